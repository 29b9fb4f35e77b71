// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package upstreamtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/setpoint-io/setpoint/controller/accounting"
)

// namespace is what the quotas of a test count.
type namespace struct {
	g        generator
	now      time.Time
	objects  map[schema.GroupResource]cache.Indexer
	registry quota.Registry
	around   accounting.Around
	small    bool // quantities for whole Pods fit into an int64, as upstream changes others
}

var kinds = []schema.GroupResource{
	accounting.Pods, accounting.Services, accounting.PersistentVolumeClaims, accounting.ResourceClaims,
	{Resource: "secrets"}, {Group: "apps", Resource: "deployments"},
}

// extendedResources are those of the device classes.
var extendedResources = map[string]string{"gpu": "example.com/gpu", "fpga": ""}

func newNamespace(t *testing.T, g generator) *namespace {
	n := &namespace{g: g, now: time.Now().Truncate(time.Second), objects: map[schema.GroupResource]cache.Indexer{}}
	for _, kind := range kinds {
		n.objects[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	lister := func(r schema.GroupVersionResource) (cache.GenericLister, error) {
		return cache.NewGenericLister(n.objects[r.GroupResource()], r.GroupResource()), nil
	}
	classes := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	for class, name := range extendedResources {
		classes.OnAdd(&resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: maybeText(name)},
		}, true)
	}
	siblings := func(_ string, pod types.UID) ([]*resourcev1.ResourceClaim, error) { return n.claimsOf(pod), nil }
	evaluators := []quota.Evaluator{
		core.NewPodEvaluator(lister, testingclock.NewFakeClock(n.now)),
		core.NewServiceEvaluator(lister),
		core.NewPersistentVolumeClaimEvaluator(lister),
		core.NewResourceClaimEvaluator(lister, classes, corelisters.NewPodLister(n.objects[accounting.Pods]), siblings),
		generic.NewObjectCountEvaluator(kinds[4], generic.ListResourceUsingListerFunc(lister, kinds[4].WithVersion("v1")), corev1.ResourceSecrets),
		generic.NewObjectCountEvaluator(kinds[5], generic.ListResourceUsingListerFunc(lister, kinds[5].WithVersion("v1")), ""),
	}
	n.registry = generic.NewRegistry(evaluators)
	n.around = accounting.Around{
		Now: n.now, ExtendedResource: func(class string) string { return classes.GetExtendedResource(class) },
		HasDeviceClass: func(name string) bool { return classes.GetDeviceClass(corev1.ResourceName(name)) != nil },
		PodOf:          n.podOf,
	}
	return n
}

func maybeText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// claimsOf returns the claims for extended resources that a Pod controls.
func (n *namespace) claimsOf(pod types.UID) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, o := range n.objects[accounting.ResourceClaims].List() {
		c := o.(*resourcev1.ResourceClaim)
		if ref := metav1.GetControllerOf(c); ref != nil && ref.UID == pod && c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
			claims = append(claims, c)
		}
	}
	return claims
}

func (n *namespace) podOf(c *resourcev1.ResourceClaim) *corev1.Pod {
	ref := metav1.GetControllerOf(c)
	if ref == nil {
		return nil
	}
	o, there, err := n.objects[accounting.Pods].GetByKey(c.Namespace + "/" + ref.Name)
	if err != nil || !there || !accounting.StandsFor(c, o.(*corev1.Pod), n.claimsOf(o.(*corev1.Pod).UID)) {
		return nil
	}
	return o.(*corev1.Pod)
}

// resourceList draws requests or limits.
func resourceList(g generator) corev1.ResourceList {
	list := corev1.ResourceList{}
	for range g.IntN(4) {
		name := one(g, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "hugepages-2Mi", "example.com/gpu",
			"kubernetes.io/odd", "plain", "requests.example.com/gpu", "deviceclass.resource.kubernetes.io/gpu", "example.com/in valid")
		list[name] = resource.MustParse(one(g, "0", "1", "250m", "3", "1Gi", "1G", "100n", "9223372036854775807", "12345678901234567890123"))
	}
	return list
}

func requirements(g generator) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: resourceList(g), Limits: resourceList(g)}
}

func meta(g generator, kind string) metav1.ObjectMeta {
	name := fmt.Sprintf("%s-%d", kind, g.IntN(6))
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(g.Int64N(2), 0)}
}

// object draws an object of a kind.
func (n *namespace) object(kind schema.GroupResource) metav1.Object {
	g := n.g
	switch kind {
	case accounting.Pods:
		return n.pod()
	case accounting.Services:
		s := &corev1.Service{ObjectMeta: meta(g, "service")}
		s.Spec.Type = one(g, "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
		s.Spec.AllocateLoadBalancerNodePorts = maybe(g, one(g, true, false))
		for range g.IntN(3) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{NodePort: one[int32](g, 0, 30000)})
		}
		return s
	case accounting.PersistentVolumeClaims:
		c := &corev1.PersistentVolumeClaim{ObjectMeta: meta(g, "claim")}
		if g.IntN(4) == 0 {
			c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: one(g, "", "gold", "silver")}
		}
		c.Spec.StorageClassName, c.Spec.VolumeAttributesClassName = maybe(g, one(g, "", "gold")), maybe(g, one(g, "", "fast", "slow"))
		if g.IntN(5) > 0 {
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(one(g, "1Gi", "10G", "1500m", "3"))}
		}
		if g.IntN(2) == 0 {
			c.Status.AllocatedResources = corev1.ResourceList{one(g, corev1.ResourceStorage, corev1.ResourceCPU): resource.MustParse(one(g, "2Gi", "1", "3500m"))}
		}
		c.Status.CurrentVolumeAttributesClassName = maybe(g, one(g, "", "slow"))
		c.Status.ModifyVolumeStatus = maybe(g, corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: one(g, "", "fast")})
		return c
	case accounting.ResourceClaims:
		return n.claim()
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: meta(g, kind.Resource)}
}

func (n *namespace) pod() *corev1.Pod {
	g := n.g
	pod := &corev1.Pod{ObjectMeta: meta(g, "pod")}
	if g.IntN(4) == 0 {
		// Upstream takes the Pod of a claim by the time of the system, which runs on.
		at := n.now.Add(one(g, -time.Hour, time.Hour))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(at)), maybe(g, g.Int64N(3))
	}
	pod.Status.Phase = one(g, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
	pod.Status.QOSClass = one(g, "", "", corev1.PodQOSBestEffort, corev1.PodQOSBurstable)
	pod.Spec.ActiveDeadlineSeconds = maybe(g, g.Int64N(3)-1)
	pod.Spec.PriorityClassName = one(g, "", "high", "low")
	for i := range g.IntN(3) {
		c := corev1.Container{Name: fmt.Sprint("c-", i), Resources: requirements(g)}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		if g.IntN(2) == 0 {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, AllocatedResources: resourceList(g), Resources: maybe(g, requirements(g))})
		}
	}
	for i := range g.IntN(3) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
			Name: fmt.Sprint("i-", i), Resources: requirements(g), RestartPolicy: maybe(g, corev1.ContainerRestartPolicyAlways),
		})
	}
	if g.IntN(4) == 0 {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: one(g, corev1.PodReasonInfeasible, corev1.PodReasonDeferred)}}
	}
	if g.IntN(3) == 0 {
		pod.Spec.Overhead = resourceList(g)
	}
	pod.Spec.Resources = maybe(g, requirements(g))
	if n.small && pod.Spec.Resources != nil {
		for _, list := range []corev1.ResourceList{pod.Spec.Resources.Requests, pod.Spec.Resources.Limits} {
			maps.DeleteFunc(list, func(_ corev1.ResourceName, q resource.Quantity) bool { _, fits := q.AsInt64(); return !fits })
		}
	}
	pod.Status.ExtendedResourceClaimStatus = maybe(g, corev1.PodExtendedResourceClaimStatus{ResourceClaimName: fmt.Sprintf("claim-%d", g.IntN(6))})
	term := corev1.PodAffinityTerm{}
	if g.IntN(2) == 0 {
		term.Namespaces = []string{"other"}
	}
	term.NamespaceSelector = maybe(g, metav1.LabelSelector{})
	switch g.IntN(6) {
	case 0:
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 1:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: term}},
		}}
	}
	return pod
}

func (n *namespace) claim() *resourcev1.ResourceClaim {
	g := n.g
	c := &resourcev1.ResourceClaim{ObjectMeta: meta(g, "claim")}
	class := func() string { return one(g, "gpu", "gpu", "fpga", "unknown", "") }
	mode := func() resourcev1.DeviceAllocationMode {
		return one(g, resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeAll, "Newer")
	}
	for range g.IntN(3) {
		var request resourcev1.DeviceRequest
		request.Exactly = maybe(g, resourcev1.ExactDeviceRequest{DeviceClassName: class(), AllocationMode: mode(), Count: g.Int64N(4)})
		for range g.IntN(3) {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{DeviceClassName: class(), AllocationMode: mode(), Count: g.Int64N(4)})
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, request)
	}
	if g.IntN(3) > 0 {
		c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: one(g, "true", "true", "false")}
		owner := meta(g, "pod")
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&owner, one(g, corev1.SchemeGroupVersion.WithKind("Pod"), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Pod"}))}
		if g.IntN(5) == 0 {
			c.OwnerReferences[0].UID = "an-earlier-pod"
		}
	}
	return c
}

// resourceQuota draws a quota.
func resourceQuota(g generator) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "quota"}}
	q.Spec.Hard = corev1.ResourceList{}
	names := []corev1.ResourceName{
		"pods", "count/pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "ephemeral-storage", "requests.ephemeral-storage",
		"limits.ephemeral-storage", "hugepages-2Mi", "requests.hugepages-2Mi", "requests.example.com/gpu", "requests.deviceclass.resource.kubernetes.io/gpu",
		"requests.deviceclass.resource.kubernetes.io/fpga", "services", "count/services", "services.nodeports", "services.loadbalancers", "persistentvolumeclaims",
		"requests.storage", "gold.storageclass.storage.k8s.io/requests.storage", "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
		"count/persistentvolumeclaims", "count/resourceclaims.resource.k8s.io", "gpu.deviceclass.resource.k8s.io/devices", "secrets", "count/secrets",
		"count/deployments.apps", "deployments.apps", "count/nothing.example.com", "requests.kubernetes.io/odd",
	}
	for range 1 + g.IntN(12) {
		q.Spec.Hard[one(g, names...)] = resource.MustParse("10")
	}
	scope := func() corev1.ResourceQuotaScope {
		return one(g, corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
			corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
			corev1.ResourceQuotaScopeVolumeAttributesClass, "Newer")
	}
	if g.IntN(3) == 0 {
		q.Spec.Scopes = append(q.Spec.Scopes, scope())
	}
	if g.IntN(2) == 0 {
		required := corev1.ScopedResourceSelectorRequirement{ScopeName: scope(), Operator: one(g, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist)}
		if g.IntN(2) == 0 {
			required.Operator, required.Values = one(g, corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn), []string{one(g, "high", "fast"), "slow"}
		}
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{required}}
	}
	return q
}

// What each object counts for, in all quotas.
func TestChargesAreUpstreams(t *testing.T) {
	g := generate(t)
	for range cases / 4 {
		n := newNamespace(t, g)
		kind := one(g, kinds...)
		if pod, ok := n.object(accounting.Pods).(*corev1.Pod); ok {
			_ = n.objects[accounting.Pods].Add(pod)
		}
		o := n.object(kind)
		if err := n.objects[kind].Add(o); err != nil {
			t.Fatal(err)
		}
		// Upstream changes some of what it is given: a quantity too large for an int64.
		want, err := n.registry.Get(kind).Usage(o.(runtime.Object).DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		// A quota that limits whatever upstream counts, and something else.
		q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"else": resource.MustParse("1")}}}
		maps.Copy(q.Spec.Hard, want)
		ours, err := accounting.NewQuota(q)
		if err != nil {
			t.Fatal(err)
		}
		before := o.(runtime.Object).DeepCopyObject()
		got, err := ours.Charge(kind, o, n.around)
		if err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(before, o) {
			t.Fatalf("the object is changed to %+v", o)
		}
		if !quota.Equals(got.Used, want) {
			t.Fatalf("%s counts for\n%v\nupstream's\n%v\n%+v", kind, got.Used, want, o)
		}
	}
}

// Objects come, change and go in any order, and the sums are those of a full count.
func TestSumsAreThoseOfUpstreamsCount(t *testing.T) {
	g := generate(t)
	for range cases / 20 {
		n := newNamespace(t, g)
		n.small = true
		q := resourceQuota(g)
		ours, err := accounting.NewQuota(q)
		if err != nil {
			t.Fatal(err)
		}
		var sum accounting.Sum
		charge := func(kind schema.GroupResource, o metav1.Object) {
			charge, err := ours.Charge(kind, o, n.around)
			if err != nil {
				t.Fatal(err)
			}
			sum.Set(types.UID(kind.String())+o.GetUID(), charge.Used)
		}
		for range g.IntN(30) {
			kind := one(g, kinds...)
			o := n.object(kind)
			if g.IntN(4) == 0 {
				_ = n.objects[kind].Delete(o)
				sum.Set(types.UID(kind.String())+o.GetUID(), nil)
			} else {
				_ = n.objects[kind].Update(o)
				charge(kind, o)
			}
			// Claims depend on Pods and on each other.
			for _, c := range n.objects[accounting.ResourceClaims].List() {
				charge(accounting.ResourceClaims, c.(metav1.Object))
			}
		}
		var names []corev1.ResourceName
		for _, kind := range kinds {
			tracked := ours.Tracks(kind, n.around)
			names = append(names, tracked...)
			want := n.registry.Get(kind).MatchingResources(slices.Sorted(maps.Keys(q.Spec.Hard)))
			slices.Sort(want)
			if want = slices.Compact(want); !slices.Equal(tracked, want) {
				t.Fatalf("of %s, ours tracks %v, upstream %v", kind, tracked, want)
			}
		}
		want, err := quota.CalculateUsage("shop", q.Spec.Scopes, q.Spec.Hard, n.registry, q.Spec.ScopeSelector)
		if err != nil {
			t.Fatal(err)
		}
		if got := sum.Used(names...); !quota.Equals(got, want) {
			t.Fatalf("quota %+v: used is %v, upstream's %v", q.Spec, got, want)
		}
	}
}
