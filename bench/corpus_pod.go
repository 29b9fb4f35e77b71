// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podsPerReplicaSet is how many Pods share what their template says.
const podsPerReplicaSet = 10

// pod returns a Pod as it runs in a cluster: of a ReplicaSet, with two
// containers, probes, volumes, four conditions, and two writers in its
// managedFields. UIDs, container IDs, addresses, hashes and digests are random,
// because that is what keeps real Pods from compressing to nothing.
func pod(i int) *corev1.Pod {
	set := i / podsPerReplicaSet
	shared, own := diceFor("replicasets", set), diceFor("pods", i)
	p := podOf(shared, own, i)
	began := own.created()
	p.CreationTimestamp = at(began, 0)
	p.Status = podStatus(own, p, shared.hex(64), shared.hex(64), i)
	p.ManagedFields = podManagedFields(p, began)
	return p
}

// podOf is what stands in a Pod before it runs.
func podOf(shared, own dice, i int) *corev1.Pod {
	team := shared.of(teams...)
	app := team + "-" + shared.of(services...)
	hash := shared.text(suffixLetters, 10)
	release := fmt.Sprintf("v%d.%d.%d", 1+shared.IntN(4), shared.IntN(30), shared.IntN(10))
	set := app + "-" + hash
	// The place among its siblings keeps names apart, however many there are.
	name := set + "-" + suffixLetters[i%podsPerReplicaSet:][:1] + own.text(suffixLetters, 4)
	token := "kube-api-access-" + own.text(suffixLetters, 5)
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: set + "-", Namespace: shared.namespace(), UID: own.uid(), ResourceVersion: version(i), Generation: 1,
			Labels: map[string]string{
				"app": app, "app.kubernetes.io/version": release, "team": team,
				"pod-template-hash": hash,
			},
			Annotations: map[string]string{
				"checksum/config": shared.hex(64), "prometheus.io/scrape": "true",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: shared.uid(), Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: nodeName(own.IntN(2000)), ServiceAccountName: app, DeprecatedServiceAccount: app,
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
			TerminationGracePeriodSeconds: new(int64(30)), Priority: new(int32(0)),
			SecurityContext:  &corev1.PodSecurityContext{},
			PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}, DefaultMode: new(int32(420))}}},
				{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
						Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
						{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
				}}}},
			},
			Containers: []corev1.Container{
				{
					Name: "app", Image: "registry.example.com/" + app + ":" + release, ImagePullPolicy: corev1.PullIfNotPresent,
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
					Env: []corev1.EnvVar{
						{Name: "LOG_LEVEL", Value: "info"},
						{Name: "DATABASE_HOST", Value: team + "-postgres.databases"},
						{Name: "DATABASE_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
							LocalObjectReference: corev1.LocalObjectReference{Name: app + "-database"}, Key: "password"}}},
						{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
					},
					Resources:                resources("250m", "512Mi"),
					LivenessProbe:            probe("/healthz", 10),
					ReadinessProbe:           probe("/readyz", 5),
					VolumeMounts:             []corev1.VolumeMount{{Name: "config", MountPath: "/etc/" + app, ReadOnly: true}, tokenMount(token)},
					TerminationMessagePath:   corev1.TerminationMessagePathDefault,
					TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				},
				{
					Name: "proxy", Image: "registry.example.com/mesh/proxy:1.27.3", ImagePullPolicy: corev1.PullIfNotPresent,
					Resources:                resources("100m", "128Mi"),
					VolumeMounts:             []corev1.VolumeMount{tokenMount(token)},
					TerminationMessagePath:   corev1.TerminationMessagePathDefault,
					TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				},
			},
		},
	}
}

func tokenMount(token string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}
}

func resources(cpu, memory string) corev1.ResourceRequirements {
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return corev1.ResourceRequirements{Requests: amount, Limits: corev1.ResourceList{corev1.ResourceMemory: amount[corev1.ResourceMemory]}}
}

func probe(path string, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		InitialDelaySeconds: 5, TimeoutSeconds: 1, PeriodSeconds: period, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

// podStatus is what a kubelet reports of a Pod that is well.
func podStatus(own dice, p *corev1.Pod, appDigest, proxyDigest string, i int) corev1.PodStatus {
	began := p.CreationTimestamp.Time
	started := at(began, 2+own.IntN(5))
	ready := at(began, 10+own.IntN(50))
	running := func(c corev1.Container, repository, digest string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: repository + "@sha256:" + digest, ContainerID: "containerd://" + own.hex(64),
			Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		}
	}
	node := own.IntN(2000)
	return corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: new(at(began, 0)), QOSClass: corev1.PodQOSBurstable,
		HostIP: fmt.Sprintf("172.16.%d.%d", node>>8, node&0xff), PodIP: podIP(i), PodIPs: []corev1.PodIP{{IP: podIP(i)}},
		Conditions: []corev1.PodCondition{
			condition("Initialized", at(began, 0)), condition("Ready", ready), condition("ContainersReady", ready), condition("PodScheduled", at(began, 0)),
		},
		ContainerStatuses: []corev1.ContainerStatus{
			running(p.Spec.Containers[0], "registry.example.com/"+p.Labels["app"], appDigest),
			running(p.Spec.Containers[1], "registry.example.com/mesh/proxy", proxyDigest),
		},
	}
}
