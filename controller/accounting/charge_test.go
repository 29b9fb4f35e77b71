// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controller/accounting"
)

// text writes a list on one line, sorted.
func text(list corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		all = append(all, fmt.Sprintf("%s=%s", name, q.String()))
	}
	return strings.Join(all, " ")
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, pair := range pairs {
		name, amount, _ := strings.Cut(pair, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func TestWhatAPodCountsFor(t *testing.T) {
	now := time.Unix(1000, 0)
	deleted := func(at time.Time, grace int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(at)), &grace
		}
	}
	const counted = "count/pods=1 cpu=1 limits.cpu=2 pods=1 requests.cpu=1"
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
		until  time.Time
	}{
		{"a container", func(*corev1.Pod) {}, counted, time.Time{}},
		{"one that has ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, "count/pods=1", time.Time{}},
		{"one whose grace period lasts", deleted(now.Add(-time.Second), 5), counted, now.Add(4 * time.Second)},
		{"one whose grace period ends now", deleted(now.Add(-5*time.Second), 5), counted, now},
		{"one whose grace period is over", deleted(now.Add(-6*time.Second), 5), "count/pods=1", time.Time{}},
		{"an init container and a sidecar", func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers = []corev1.Container{container("sidecar", amounts("cpu=500m"), nil), container("init", amounts("cpu=3"), nil)}
			p.Spec.InitContainers[0].RestartPolicy = &always
		}, "count/pods=1 cpu=3500m limits.cpu=2 pods=1 requests.cpu=3500m", time.Time{}},
		{"overhead", func(p *corev1.Pod) { p.Spec.Overhead = amounts("cpu=250m", "memory=1Mi") },
			"count/pods=1 cpu=1250m limits.cpu=2250m memory=1Mi pods=1 requests.cpu=1250m requests.memory=1Mi", time.Time{}},
		{"resources of the Pod", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu=5"), Limits: amounts("cpu=6")}
		}, "count/pods=1 cpu=5 limits.cpu=6 pods=1 requests.cpu=5", time.Time{}},
		{"a resize that is under way", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: amounts("cpu=4")}}
		}, "count/pods=1 cpu=4 limits.cpu=2 pods=1 requests.cpu=4", time.Time{}},
		{"extended resources and huge pages", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts("example.com/gpu=2", "hugepages-2Mi=4Mi", "kubernetes.io/odd=1")}
		}, "count/pods=1 hugepages-2Mi=4Mi pods=1 requests.example.com/gpu=2 requests.hugepages-2Mi=4Mi", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("c", amounts("cpu=1"), amounts("cpu=2"))}}}
			c.change(pod)
			used, until := accounting.Pod(pod, now)
			if text(used) != c.want || !until.Equal(c.until) {
				t.Errorf("counts for %s until %v, want %s until %v", text(used), until, c.want, c.until)
			}
		})
	}
}

// The quantity is larger than an int64, so that copies of it share memory.
func TestAPodIsNotChanged(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Resources: &corev1.ResourceRequirements{Requests: amounts("cpu=12345678901234567890123"), Limits: amounts("cpu=12345678901234567890123")},
		Overhead:  amounts("cpu=1"),
	}}
	before := pod.DeepCopy()
	first, _ := accounting.Pod(pod, time.Time{})
	second, _ := accounting.Pod(pod, time.Time{})
	if text(first) != text(second) || !apiequality.Semantic.DeepEqual(pod, before) {
		t.Errorf("the Pod counts for %s, then for %s", text(first), text(second))
	}
}

func TestWhatOtherObjectsCountFor(t *testing.T) {
	service := func(kind corev1.ServiceType, allocate *bool, nodePorts ...int32) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, AllocateLoadBalancerNodePorts: allocate}}
		for _, port := range nodePorts {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{NodePort: port})
		}
		return s
	}
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: new("gold"), Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage=1500m")},
	}}
	shrinks := claim.DeepCopy()
	shrinks.Status.AllocatedResources = amounts("storage=3")
	shrinks.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: ""}
	devices := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
		{FirstAvailable: []resourcev1.DeviceSubRequest{
			{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
			{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeAll},
		}},
	}}}}
	gpus := func(class string) string { return map[string]string{"gpu": "example.com/gpu"}[class] }
	for _, c := range []struct {
		name string
		used corev1.ResourceList
		want string
	}{
		{"a Deployment", accounting.Object(schema.GroupResource{Group: "apps", Resource: "deployments"}), "count/deployments.apps=1"},
		{"a Secret", accounting.Object(schema.GroupResource{Resource: "secrets"}), "count/secrets=1 secrets=1"},
		{"a Service", accounting.Service(service("", nil, 0, 0)), "count/services=1 services=1 services.loadbalancers=0 services.nodeports=0"},
		{"node ports", accounting.Service(service("NodePort", nil, 0, 0)), "count/services=1 services=1 services.loadbalancers=0 services.nodeports=2"},
		{"a load balancer", accounting.Service(service("LoadBalancer", nil, 0, 0)), "count/services=1 services=1 services.loadbalancers=1 services.nodeports=2"},
		{"a load balancer with one node port", accounting.Service(service("LoadBalancer", new(false), 0, 30000)), "count/services=1 services=1 services.loadbalancers=1 services.nodeports=1"},
		{"storage", accounting.PersistentVolumeClaim(claim), "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 " +
			"gold.storageclass.storage.k8s.io/requests.storage=2 persistentvolumeclaims=1 requests.storage=2"},
		{"storage that is allocated", accounting.PersistentVolumeClaim(shrinks), "count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=3"},
		{"devices", accounting.ResourceClaim(devices, amounts("requests.example.com/gpu=30"), gpus), "count/resourceclaims.resource.k8s.io=1 " +
			"gpu.deviceclass.resource.k8s.io/devices=34 requests.deviceclass.resource.kubernetes.io/gpu=34 requests.example.com/gpu=4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if text(c.used) != c.want {
				t.Errorf("counts for %s, want %s", text(c.used), c.want)
			}
		})
	}
}

func TestAQuotaCountsWhatIsInItsScopes(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.PriorityClassName, pod.Spec.ActiveDeadlineSeconds = "high", new(int64(10))
	in := func(values ...string) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: values}
	}
	for _, c := range []struct {
		name     string
		scopes   []corev1.ResourceQuotaScope
		selector []corev1.ScopedResourceSelectorRequirement
		want     string
	}{
		{"none", nil, nil, "pods=1"},
		{"two that match", []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeBestEffort}, nil, "pods=1"},
		{"one that does not match", []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotBestEffort}, nil, ""},
		{"the class", nil, []corev1.ScopedResourceSelectorRequirement{in("high", "low")}, "pods=1"},
		{"another class", nil, []corev1.ScopedResourceSelectorRequirement{in("low")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: amounts("pods=1", "services=1"), Scopes: c.scopes}}
			if c.selector != nil {
				q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: c.selector}
			}
			quota, err := accounting.NewQuota(q)
			if err != nil {
				t.Fatal(err)
			}
			charge, err := quota.Charge(accounting.Pods, pod, accounting.Around{})
			if err != nil || text(charge.Used) != c.want {
				t.Errorf("counts for %s, want %s: %v", text(charge.Used), c.want, err)
			}
		})
	}
}

func TestAScopeThatCannotBeReadIsNamed(t *testing.T) {
	for want, required := range map[string]corev1.ScopedResourceSelectorRequirement{
		`spec.scopeSelector.matchExpressions[0].operator is "Near"; write In, NotIn, Exists or DoesNotExist`: {ScopeName: "PriorityClass", Operator: "Near"},
		`spec.scopeSelector.matchExpressions[0]: values`:                                                     {ScopeName: "PriorityClass", Operator: "In"},
	} {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small"}}
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{required}}
		if _, err := accounting.NewQuota(q); err == nil || !strings.HasPrefix(err.Error(), "reading the scopes of ResourceQuota shop/small: "+want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestAnObjectOfAnotherTypeIsAnError(t *testing.T) {
	quota, err := accounting.NewQuota(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: amounts("pods=1", "count/services=1")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupResource{accounting.Pods, accounting.Services} {
		if _, err := quota.Charge(kind, &metav1.PartialObjectMetadata{}, accounting.Around{}); err == nil || !strings.Contains(err.Error(), kind.Resource) {
			t.Errorf("%s: the error is %v", kind, err)
		}
	}
}
