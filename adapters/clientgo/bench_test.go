// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// benchPods is how many Pods the benchmarks cache, ten to a ReplicaSet and five kilobytes each.
const benchPods = 20_000

// BenchmarkFactories compares the factory of this package with that of client-go: the heap of a
// cached Pod, and the time of a Get and of a List of a namespace.
func BenchmarkFactories(b *testing.B) {
	server := fakeapi.New()
	all := server.Serve(pods)
	for i := range benchPods {
		if err := all.Add(largePod(i)); err != nil {
			b.Fatal(err)
		}
	}
	server.Listen()
	defer server.Close()
	clientset := kubernetes.NewForConfigOrDie(server.Config())
	// The server is in the same process, and keeps what it has encoded once.
	if found, err := clientset.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{}); err != nil || len(found.Items) != benchPods {
		b.Fatal(err)
	}
	for name, build := range map[string]func() informers.SharedInformerFactory{
		"setpoint":  func() informers.SharedInformerFactory { return clientgo.NewSharedInformerFactory(clientset, 0) },
		"client-go": func() informers.SharedInformerFactory { return informers.NewSharedInformerFactory(clientset, 0) },
	} {
		b.Run(name, func(b *testing.B) { benchFactory(b, build()) })
	}
}

func benchFactory(b *testing.B, factory informers.SharedInformerFactory) {
	before := heap()
	informer := factory.Core().V1().Pods()
	lister := informer.Lister()
	factory.StartWithContext(b.Context())
	if !cache.WaitFor(b.Context(), "", informer.Informer().HasSyncedChecker()) {
		b.Fatal("not synced")
	}
	perPod := float64(heap()-before) / benchPods
	b.Run("Get", func(b *testing.B) {
		b.ReportMetric(perPod, "heap-B/Pod")
		for i := range b.N {
			name := i * 7919 % benchPods
			if _, err := lister.Pods(namespaceOf(name)).Get(nameOf(name)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("GetAgain", func(b *testing.B) {
		for range b.N {
			if _, err := lister.Pods(namespaceOf(1)).Get(nameOf(1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ListNamespace", func(b *testing.B) {
		for range b.N {
			found, err := informer.Informer().GetIndexer().ByIndex(cache.NamespaceIndex, namespaceOf(1))
			if err != nil || len(found) != benchPods/benchNamespaces {
				b.Fatal(len(found), err)
			}
		}
	})
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

const benchNamespaces = 20

func namespaceOf(i int) string { return fmt.Sprintf("team-%d", i%benchNamespaces) }

func nameOf(i int) string { return fmt.Sprintf("web-%d-%x", i/10, i*2654435761%(1<<32)) }

// largePod is a Pod as a Deployment makes it, with two containers and the managedFields of its
// writers.
func largePod(i int) *corev1.Pod {
	yes := true
	set := i / 10
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespaceOf(i), Name: nameOf(i), UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i*i)),
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
