// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package upstreamtest

import (
	"context"
	"fmt"
	"testing"
	_ "unsafe" // for linknames

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/apps/validation"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/disruption"
	_ "k8s.io/kubernetes/pkg/controller/statefulset"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

//go:linkname getStatefulSetMaxUnavailable k8s.io/kubernetes/pkg/controller/statefulset.getStatefulSetMaxUnavailable
func getStatefulSetMaxUnavailable(maxUnavailable *intstr.IntOrString, replicas int) (int, error)

//go:linkname getExpectedPodCount k8s.io/kubernetes/pkg/controller/disruption.(*DisruptionController).getExpectedPodCount
func getExpectedPodCount(dc *disruption.DisruptionController, ctx context.Context, pdb *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expected, healthy int32, unmanaged []string, err error) //nolint:revive // a method's receiver comes first

// limit draws the value of a field. Some values are such as the API server refuses.
func limit(g generator) *intstr.IntOrString {
	value := one(g,
		intstr.FromInt32(int32(g.IntN(20))),
		intstr.FromInt32(int32(g.IntN(2000)-100)),
		intstr.FromString(fmt.Sprintf("%d%%", g.IntN(101))),
		intstr.FromString(fmt.Sprintf("%d%%", g.IntN(1000))),
		intstr.FromString(one(g, "", "%", "25", "0.5%", "-3%", "+3%", "a quarter", " 3%", "99999999999999999999%")),
	)
	return maybe(g, value)
}

// accepted reports whether the API server accepts the value of a field.
func accepted(value *intstr.IntOrString) bool {
	return value == nil || len(validation.ValidatePositiveIntOrPercent(*value, field.NewPath("field"))) == 0
}

// sameErrors compares who refuses what: our side refuses what upstream refuses and what the API
// server refuses, and nothing else. It reports whether there are results to compare.
func sameErrors(t *testing.T, what string, ours, upstream error, fields ...*intstr.IntOrString) bool {
	t.Helper()
	refused := upstream != nil
	for _, f := range fields {
		refused = refused || !accepted(f)
	}
	if (ours != nil) != refused {
		t.Fatalf("%s: ours returns %v, upstream %v", what, ours, upstream)
	}
	return !refused
}

const cases = 20000

func TestLimitsOfDeploymentsAreUpstreams(t *testing.T) {
	g, compared := generate(t), 0
	for range cases {
		desired := int32(g.IntN(one(g, 3, 12, 10000)))
		surge, unavailable := limit(g), limit(g)
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &desired, Strategy: appsv1.DeploymentStrategy{
			Type:          one(g, appsv1.RollingUpdateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType),
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: surge, MaxUnavailable: unavailable},
		}}}
		what := fmt.Sprintf("%s of %d, surge %s, unavailable %s", d.Spec.Strategy.Type, desired, surge, unavailable)
		l, err := podlimits.Deployment(d)
		if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			surge, unavailable = nil, nil
		}
		_, _, upstream := deploymentutil.ResolveFenceposts(surge, unavailable, desired)
		if !sameErrors(t, what, err, upstream, surge, unavailable) {
			continue
		}
		compared++
		if s, u := deploymentutil.MaxSurge(*d), deploymentutil.MaxUnavailable(*d); l.Surge != s || l.Unavailable != u {
			t.Fatalf("%s: ours is %+v, upstream's surge %d and unavailable %d", what, l, s, u)
		}
		if least := deploymentutil.MinAvailable(d); deploymentutil.IsRollingUpdate(d) && l.Least() != least {
			t.Fatalf("%s: ours wants %d available, upstream %d", what, l.Least(), least)
		}
	}
	enough(t, compared)
}

func TestLimitsOfDaemonSetsAreUpstreams(t *testing.T) {
	g, compared := generate(t), 0
	for range cases {
		nodes := g.IntN(one(g, 3, 12, 10000))
		surge, unavailable := limit(g), limit(g)
		if unavailable == nil {
			unavailable = new(intstr.FromInt32(0)) // upstream refuses none, which the API server replaces by 1
		}
		set := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
			Type:          one(g, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType),
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: surge, MaxUnavailable: unavailable},
		}}}
		what := fmt.Sprintf("%s on %d nodes, surge %s, unavailable %s", set.Spec.UpdateStrategy.Type, nodes, surge, unavailable)
		rolls := set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
		l, err := podlimits.DaemonSet(set, int32(nodes))
		u, upstream := daemonutil.UnavailableCount(set, nodes)
		s, upstreamSurge := daemonutil.SurgeCount(set, nodes)
		if upstream == nil {
			upstream = upstreamSurge
		}
		if !rolls {
			surge, unavailable = nil, nil
		}
		if !sameErrors(t, what, err, upstream, surge, unavailable) {
			continue
		}
		compared++
		if rolls && nodes > 0 && s == 0 && u == 0 {
			u = 1 // as updatedDesiredNodeCounts of pkg/controller/daemon does
		}
		if int(l.Surge) != s || int(l.Unavailable) != u {
			t.Fatalf("%s: ours is %+v, upstream's surge %d and unavailable %d", what, l, s, u)
		}
	}
	enough(t, compared)
}

func TestLimitsOfStatefulSetsAreUpstreams(t *testing.T) {
	g, compared := generate(t), 0
	for range cases {
		replicas, unavailable := int32(g.IntN(one(g, 3, 12, 10000))), limit(g)
		set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: unavailable},
		}}}
		what := fmt.Sprintf("%d replicas, unavailable %s", replicas, unavailable)
		l, err := podlimits.StatefulSet(set)
		want, upstream := getStatefulSetMaxUnavailable(unavailable, int(replicas))
		if !sameErrors(t, what, err, upstream, unavailable) {
			continue
		}
		compared++
		if int(l.Unavailable) != want {
			t.Fatalf("%s: ours is %+v, upstream's unavailable %d", what, l, want)
		}
	}
	enough(t, compared)
}

func TestBudgetsAreUpstreams(t *testing.T) {
	g, compared := generate(t), 0
	c := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(c, 0)
	controllers := factory.Core().V1().ReplicationControllers()
	dc := disruption.NewDisruptionController(t.Context(), factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets(),
		controllers, factory.Apps().V1().ReplicaSets(), factory.Apps().V1().Deployments(), factory.Apps().V1().StatefulSets(),
		c, nil, nil, c.Discovery())
	for range cases {
		// The Pods of a budget have up to three controllers.
		var pods []*corev1.Pod
		var scale int32
		for i := range g.IntN(3) {
			replicas := int32(g.IntN(40))
			rc := &corev1.ReplicationController{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("rc-", i), UID: types.UID(fmt.Sprint("uid-", i))},
				Spec:       corev1.ReplicationControllerSpec{Replicas: &replicas},
			}
			if err := controllers.Informer().GetStore().Add(rc); err != nil {
				t.Fatal(err)
			}
			scale += replicas
			ref := *metav1.NewControllerRef(rc, corev1.SchemeGroupVersion.WithKind("ReplicationController"))
			for range 1 + g.IntN(4) {
				pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", OwnerReferences: []metav1.OwnerReference{ref}}})
			}
		}
		pdb := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: limit(g), MinAvailable: limit(g)}}
		total := int32(len(pods))
		if podlimits.NeedsScale(pdb) {
			total = scale
		}
		what := fmt.Sprintf("%d Pods, scale %d, unavailable %s, available %s", len(pods), scale, pdb.Spec.MaxUnavailable, pdb.Spec.MinAvailable)
		b, err := podlimits.PodDisruptionBudget(pdb, total)
		expected, healthy, _, upstream := getExpectedPodCount(dc, t.Context(), pdb, pods)
		read := pdb.Spec.MaxUnavailable
		if read == nil {
			read = pdb.Spec.MinAvailable
		}
		if !sameErrors(t, what, err, upstream, read) {
			continue
		}
		compared++
		if b != (podlimits.Budget{Expected: expected, Healthy: healthy}) {
			t.Fatalf("%s: ours is %+v, upstream expects %d and wants %d healthy", what, b, expected, healthy)
		}
	}
	enough(t, compared)
}

// enough fails a test that generated little to compare.
func enough(t *testing.T, compared int) {
	t.Helper()
	if compared < cases/10 {
		t.Errorf("%d of %d cases were compared; the others were refused by both sides", compared, cases)
	}
}
