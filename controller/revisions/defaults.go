// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// fillDefaults fills in what the API server fills in for a Pod template. A field that a
// revision was written without has the same value in the object as the informer shows it.
//
// Sources: k8s.io/kubernetes/pkg/apis/core/v1 and /apps/v1, SetObjectDefaults_StatefulSet.
func fillDefaults(pod *corev1.PodSpec) {
	if pod.ServiceAccountName == "" {
		pod.ServiceAccountName = pod.DeprecatedServiceAccount
	}
	pod.DeprecatedServiceAccount = pod.ServiceAccountName
	fill(&pod.DNSPolicy, corev1.DNSClusterFirst)
	fill(&pod.RestartPolicy, corev1.RestartPolicyAlways)
	fill(&pod.SchedulerName, corev1.DefaultSchedulerName)
	fillPointer(&pod.SecurityContext, corev1.PodSecurityContext{})
	fillPointer(&pod.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	for i := range pod.Volumes {
		fillVolume(&pod.Volumes[i].VolumeSource)
	}
	for i := range pod.InitContainers {
		fillContainer(&pod.InitContainers[i])
	}
	for i := range pod.Containers {
		fillContainer(&pod.Containers[i])
	}
	for i := range pod.EphemeralContainers {
		fillContainer((*corev1.Container)(&pod.EphemeralContainers[i].EphemeralContainerCommon))
	}
	roundUp(pod.Overhead)
	if pod.Resources != nil {
		roundUp(pod.Resources.Limits)
		roundUp(pod.Resources.Requests)
	}
}

func fillContainer(c *corev1.Container) {
	fill(&c.ImagePullPolicy, pullPolicy(c.Image))
	fill(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fill(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		fill(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		fillFieldRef(from.FieldRef)
		if from.FileKeyRef != nil {
			fillPointer(&from.FileKeyRef.Optional, false)
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		fillProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				fillHTTPGet(handler.HTTPGet)
			}
		}
	}
}

func fillProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	fill(&p.TimeoutSeconds, 1)
	fill(&p.PeriodSeconds, 10)
	fill(&p.SuccessThreshold, 1)
	fill(&p.FailureThreshold, 3)
	fillHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		fillPointer(&p.GRPC.Service, "")
	}
}

func fillHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		fill(&get.Path, "/")
		fill(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func fillFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		fill(&ref.APIVersion, "v1")
	}
}

// fill sets a field that has no value.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// fillPointer sets a field that is not set.
func fillPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// roundUp rounds quantities up to thousandths.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(-3)
		list[name] = quantity
	}
}

// An image is a name, possibly with a registry, and a tag, a digest, or both. The API server
// reads it with github.com/distribution/reference. Names in revisions have been accepted by
// it, or cannot be pulled.
var (
	imageTag    = regexp.MustCompile(`:(\w[\w.-]{0,127})$`)
	imageDigest = regexp.MustCompile(`@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
)

// pullPolicy returns the default for an image: Always for the tag latest, which also is the
// tag of an image without tag and digest.
func pullPolicy(image string) corev1.PullPolicy {
	digest := imageDigest.MatchString(image)
	if digest {
		image = imageDigest.ReplaceAllString(image, "")
	}
	tag := imageTag.FindStringSubmatch(image)
	if tag == nil && !digest || tag != nil && tag[1] == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
