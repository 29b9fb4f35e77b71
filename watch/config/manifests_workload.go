// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// nobody is the user and group of the process: any but root.
const nobody = 65532

const (
	configVolume = "config"
	stateVolume  = "state"
	tmpVolume    = "tmp"
)

// alone reports whether the watch is a StatefulSet: with something to keep and one replica.
// Of a StatefulSet there is never a second Pod while the first may still run, even if its
// node does not answer, and its volume need not be one that several nodes can write to.
func (p *plan) alone() bool { return len(p.state) > 0 && p.Replicas == 1 }

// shared reports whether all replicas have one volume. Whoever is chosen goes on where the
// last one stopped only if it has the last one's cursor.
func (p *plan) shared() bool { return len(p.state) > 0 && p.Replicas > 1 }

// about names the Secrets that must be there.
func (p *plan) about() string {
	var b strings.Builder
	b.WriteString("The watch itself.")
	keys := map[string][]string{}
	var names []string
	add := func(secret string, more ...string) {
		if keys[secret] == nil {
			names = append(names, secret)
		}
		keys[secret] = append(keys[secret], more...)
	}
	for _, s := range p.secrets {
		add(s.secret, s.keys...)
	}
	if len(p.env) > 0 {
		add(p.Name, p.env...)
	}
	for _, name := range names {
		slices.Sort(keys[name])
		fmt.Fprintf(&b, "\n# It needs the Secret %s with %s.", name, strings.Join(slices.Compact(keys[name]), ", "))
	}
	return b.String()
}

// hashAnnotation has a hash of the configuration, so that a change of it rolls out.
const hashAnnotation = "setpoint.io/configuration"

func (p *plan) hash() string {
	sum := sha256.Sum256(p.config.text)
	return hex.EncodeToString(sum[:8])
}

func (p *plan) configuration() []runtime.Object {
	return []runtime.Object{&corev1.ConfigMap{
		TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: p.metadata, Data: map[string]string{configFile: string(p.config.text)},
	}}
}

func (p *plan) workload() []runtime.Object {
	version := appsv1.SchemeGroupVersion.String()
	replicas := int32(p.Replicas)
	selector := &metav1.LabelSelector{MatchLabels: p.labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: p.labels, Annotations: map[string]string{hashAnnotation: p.hash()}}, Spec: p.pod(),
	}
	if p.alone() {
		return []runtime.Object{&appsv1.StatefulSet{
			TypeMeta: typeMeta(version, "StatefulSet"), ObjectMeta: p.metadata,
			Spec: appsv1.StatefulSetSpec{
				Replicas: &replicas, ServiceName: p.Name, Selector: selector, Template: template,
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
					ObjectMeta: metav1.ObjectMeta{Name: stateVolume},
					Spec:       p.claim(corev1.ReadWriteOnce),
				}},
			},
		}}
	}
	one := intstr.FromInt32(1)
	none := intstr.FromInt32(0)
	deployment := &appsv1.Deployment{
		TypeMeta: typeMeta(version, "Deployment"), ObjectMeta: p.metadata,
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: selector, Template: template,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		},
	}
	if p.lease != "" { // a new one beside the old ones stands by
		deployment.Spec.Strategy = appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one},
		}
	}
	return []runtime.Object{deployment}
}

// storage is the volume that replicas share.
func (p *plan) storage() []runtime.Object {
	if !p.shared() {
		return nil
	}
	return []runtime.Object{&corev1.PersistentVolumeClaim{
		TypeMeta: typeMeta("v1", "PersistentVolumeClaim"), ObjectMeta: p.metadata, Spec: p.claim(corev1.ReadWriteMany),
	}}
}

func (p *plan) claim(mode corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: p.size}},
	}
	if p.StorageClass != "" {
		claim.StorageClassName = &p.StorageClass
	}
	return claim
}

func (p *plan) service() []runtime.Object {
	service := &corev1.Service{
		TypeMeta: typeMeta("v1", "Service"), ObjectMeta: p.metadata,
		Spec: corev1.ServiceSpec{
			Selector: p.labels,
			Ports:    []corev1.ServicePort{{Name: portName, Port: p.port, TargetPort: intstr.FromString(portName)}},
		},
	}
	if p.alone() {
		service.Spec.ClusterIP = corev1.ClusterIPNone // of a StatefulSet
	}
	return []runtime.Object{service}
}

// pod is what the Pod security standard "restricted" lets through.
func (p *plan) pod() corev1.PodSpec {
	user, yes, no := int64(nobody), true, false
	changes := corev1.FSGroupChangeOnRootMismatch
	volumes, mounts := p.volumes()
	spec := corev1.PodSpec{
		ServiceAccountName: p.Name,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, FSGroupChangePolicy: &changes,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "watch", Image: p.Image, Command: []string{defaultName}, Args: p.args, Env: p.variables(),
			Ports:          []corev1.ContainerPort{{Name: portName, ContainerPort: p.port}},
			LivenessProbe:  probe("/healthz"),
			ReadinessProbe: probe("/readyz"),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: mounts,
		}},
		Volumes: volumes,
	}
	if p.Replicas > 1 {
		// Rather not on one node; on one node rather than not at all.
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
					LabelSelector: &metav1.LabelSelector{MatchLabels: p.labels}, TopologyKey: corev1.LabelHostname,
				},
			}},
		}}
	}
	return spec
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(portName), Scheme: corev1.URISchemeHTTPS}},
		PeriodSeconds: 10, TimeoutSeconds: 5, FailureThreshold: 3,
	}
}

// variables are those that the configuration names, from the Secret that is called as
// everything is.
func (p *plan) variables() []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range p.env {
		all = append(all, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.Name}, Key: name,
		}}})
	}
	return all
}

func (p *plan) volumes() ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{
		{Name: configVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.Name},
		}}},
		{Name: tmpVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	mounts := []corev1.VolumeMount{
		{Name: configVolume, MountPath: configDir, ReadOnly: true},
		{Name: tmpVolume, MountPath: "/tmp"},
	}
	if p.shared() {
		volumes = append(volumes, corev1.Volume{Name: stateVolume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name},
		}})
	}
	for _, dir := range p.state {
		// A folder of its own in the volume: one that comes later moves none of the others.
		mounts = append(mounts, corev1.VolumeMount{Name: stateVolume, MountPath: dir, SubPath: strings.TrimPrefix(dir, "/")})
	}
	mode := int32(0o440)
	for i, s := range p.secrets {
		var items []corev1.KeyToPath
		for _, key := range s.keys {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
		name := fmt.Sprintf("secret-%d", i)
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: s.secret, DefaultMode: &mode, Items: items,
		}}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: s.dir, ReadOnly: true})
	}
	return volumes, mounts
}
