// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podload

import (
	encodingjson "encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Count is how many Pods there are, in how many namespaces. Ten belong to a ReplicaSet.
const (
	Count      = 20_000
	Namespaces = 20
)

// NamespaceOf returns the namespace of Pod i.
func NamespaceOf(i int) string { return fmt.Sprintf("team-%d", i%Namespaces) }

// NameOf returns the name of Pod i.
func NameOf(i int) string { return fmt.Sprintf("web-%d-%x", i/10, i*2654435761%(1<<32)) }

// Size returns the size of a Pod in bytes, in the encodings of a server.
func Size(b *testing.B) (json, protobuf int) {
	b.Helper()
	text, err := encodingjson.Marshal(Pod(1))
	if err != nil {
		b.Fatal(err)
	}
	return len(text), Pod(1).Size()
}

// Pod is Pod i, as a Deployment makes it: with two containers and the managedFields of its writers.
func Pod(i int) *corev1.Pod {
	yes := true
	set := i / 10
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: NamespaceOf(i), Name: NameOf(i), UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i*i)),
		Labels:          map[string]string{"app": fmt.Sprintf("web-%d", set), "pod-template-hash": fmt.Sprintf("%x", set*7919), "tier": "frontend"},
		Annotations:     map[string]string{"prometheus.io/scrape": "true", "checksum/config": fmt.Sprintf("%064x", set)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("web-%d", set), UID: types.UID(fmt.Sprintf("set-%d", set)), Controller: &yes}},
	}}
	for _, name := range []string{"web", "proxy"} {
		c := corev1.Container{
			Name: name, Image: "registry.example.com/team/" + name + ":v1.2.3", Args: []string{"--listen=:8080", "--log-level=info", "--config=/etc/config/config.yaml"},
			Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}},
			VolumeMounts:   []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config"}, {Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/check", "live"}}}, PeriodSeconds: 10, TimeoutSeconds: 1},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/check", "ready"}}}, PeriodSeconds: 10, TimeoutSeconds: 1},
		}
		for n := range 6 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: fmt.Sprintf("value-%d-of-%s", n, name)})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, Image: c.Image, ImageID: "registry.example.com/team/" + name + "@sha256:" + fmt.Sprintf("%064x", set), ContainerID: fmt.Sprintf("containerd://%064x", i),
		})
	}
	p.Spec.NodeName = fmt.Sprintf("node-%d", i%500)
	for _, condition := range []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	p.Status.Phase, p.Status.PodIP, p.Status.HostIP = corev1.PodRunning, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), "192.168.0.1"
	fields := `{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:tier":{}},"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"SETTING_0\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"SETTING_1\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:livenessProbe":{},"f:name":{},"f:ports":{},"f:resources":{}}}}}`
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)})
	}
	return p
}
