// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podrank_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podrank"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// ranked are all Pods in the order in which they are deleted.
func ranked(pods []*corev1.Pod, p podrank.Options) []*corev1.Pod {
	return owned.Surplus(pods, len(pods), podrank.New(p))
}

// goodPod returns a Pod that no rule sends first: it runs on a node, has been ready
// and there for an hour, and never restarted.
func goodPod(name string) *corev1.Pod {
	hourAgo := metav1.NewTime(noon.Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: hourAgo},
		Spec: corev1.PodSpec{
			NodeName:       "node-1",
			InitContainers: []corev1.Container{{Name: "setup"}, {Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
		},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodRunning,
			Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: hourAgo}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "web"}, {Name: "log"}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "setup"}, {Name: "proxy"}},
		},
	}
}

// The changes of which rules are told.
func onNode(node string) func(*corev1.Pod)        { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func inPhase(x corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = x } }
func unready(p *corev1.Pod)                       { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func costing(cost string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: cost} }
}
func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-d)) }
}
func readyWhenever(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.Time{} }
func restarted(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[1].RestartCount = n }
}
func sidecarRestarted(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.InitContainerStatuses[1].RestartCount = n }
}
func setupRestarted(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].RestartCount = n }
}
func madeFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-d)) }
}
func withUID(uid types.UID) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = uid } }

func TestACostThatIsIgnoredLeavesTheOrderToTheRest(t *testing.T) {
	cheap, crowded := goodPod("cheap"), goodPod("crowded")
	costing("-1")(cheap)
	onNode("crowded")(crowded)
	for _, pods := range [][]*corev1.Pod{{cheap, crowded}, {crowded, cheap}} {
		if got := ranked(pods, podrank.Options{Now: noon, Neighbours: map[string]int{"crowded": 5, "node-1": 1}, IgnoreCost: true}); got[0] != crowded {
			t.Errorf("%s goes before %s", got[0].Name, got[1].Name)
		}
	}
}

func TestDeletionOrder(t *testing.T) {
	do := func(changes ...func(*corev1.Pod)) []func(*corev1.Pod) { return changes }
	crowds := map[string]int{"crowded": 5, "node-1": 1}
	for _, c := range []struct {
		name          string
		sooner, later []func(*corev1.Pod)
	}{
		{"unassigned before assigned", do(onNode("")), do(inPhase(corev1.PodPending), unready)},
		{"Pending before Unknown", do(inPhase(corev1.PodPending)), do(inPhase(corev1.PodUnknown), unready)},
		{"Unknown before Running", do(inPhase(corev1.PodUnknown)), do(unready)},
		{"not ready before ready", do(unready, costing("100")), do(costing("-100"))},
		{"without readiness before ready", do(func(p *corev1.Pod) { p.Status.Conditions = nil }), do()},
		{"cheap before dear", do(costing("-1")), do(onNode("crowded"))},
		{"a cost of zero before a cost of one", do(costing("0")), do(costing("1"))},
		{"a cost with a plus sign is none", do(costing("+2")), do(costing("1"))},
		{"a cost with leading zeros is none", do(costing("002")), do(costing("1"))},
		{"a cost that is too large is none", do(costing("3000000000")), do(costing("1"))},
		{"a cost that is no number is none", do(costing("gold")), do(costing("1"))},
		{"an empty cost is none", do(costing("")), do(costing("1"))},
		{"crowded before lonely", do(onNode("crowded")), do(readyFor(time.Second))},
		{"ready for a minute before ready for an hour", do(readyFor(time.Minute)), do(restarted(9))},
		{"ready since nobody knows before ready for a second", do(readyWhenever), do(readyFor(time.Second))},
		{"ready in the future before ready for a second", do(readyFor(-time.Minute)), do(readyFor(time.Second))},
		{"ready for about as long: by UID", do(readyFor(61*time.Minute), withUID("a")), do(readyFor(60*time.Minute), withUID("b"), restarted(9))},
		{"more restarts before fewer", do(restarted(2)), do(restarted(1), madeFor(time.Second))},
		{"restarts before restarts of sidecars", do(restarted(1)), do(sidecarRestarted(9))},
		{"more restarts of a sidecar before fewer", do(sidecarRestarted(1)), do(madeFor(time.Second))},
		{"restarts of other init containers do not count", do(madeFor(time.Second)), do(setupRestarted(9))},
		{"made a minute ago before made an hour ago", do(madeFor(time.Minute)), do()},
		{"made nobody knows when before made a second ago", do(func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} }), do(madeFor(time.Second))},
		{"made at about the same time: by UID", do(madeFor(61*time.Minute), withUID("a")), do(madeFor(60*time.Minute), withUID("b"))},
		{"unready Pods by creation, not by readiness", do(unready, madeFor(time.Minute), readyFor(time.Hour)), do(unready, readyFor(time.Second))},
	} {
		t.Run(c.name, func(t *testing.T) {
			sooner, later := goodPod("sooner"), goodPod("later")
			for _, change := range c.sooner {
				change(sooner)
			}
			for _, change := range c.later {
				change(later)
			}
			for _, pods := range [][]*corev1.Pod{{sooner, later}, {later, sooner}} {
				if got := ranked(pods, podrank.Options{Now: noon, Neighbours: crowds}); got[0] != sooner {
					t.Errorf("%s goes before %s", got[0].Name, got[1].Name)
				}
			}
		})
	}
}

func TestAnOwnReasonComesBeforeThoseOfPods(t *testing.T) {
	idle, young, old := goodPod("idle"), goodPod("young"), goodPod("old")
	idle.Labels = map[string]string{"idle": "yes"}
	readyFor(time.Minute)(young)
	isIdle := func(a, b *corev1.Pod) int { return strings.Compare(b.Labels["idle"], a.Labels["idle"]) }
	pods := []*corev1.Pod{old, young, idle}
	rank := podrank.New(podrank.Options{Now: noon})
	for n, want := range [][]*corev1.Pod{{}, {idle}, {idle, young}, {idle, young, old}, {idle, young, old}} {
		if got := owned.Surplus(pods, n, isIdle, rank); !slices.Equal(got, want) {
			t.Errorf("the %d that are missed least are %v", n, podNames(got))
		}
	}
	if got := owned.Surplus(pods, -1, isIdle, rank); len(got) > 0 {
		t.Errorf("with one too few, %v go", podNames(got))
	}
	if got := owned.Surplus(pods, 2); !slices.Equal(got, pods[:2]) {
		t.Errorf("without a reason, %v go", podNames(got))
	}
}

func podNames(pods []*corev1.Pod) (all []string) {
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return all
}

func randomPod(random *rand.Rand, name string) *corev1.Pod {
	pod := goodPod(name)
	pod.UID = types.UID(fmt.Sprint(random.IntN(1000)))
	for _, change := range []func(*corev1.Pod){
		onNode([]string{"", "node-1", "crowded"}[random.IntN(3)]), inPhase([]corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning}[random.IntN(3)]),
		unready, costing(fmt.Sprint(random.IntN(3))), readyFor(time.Duration(random.IntN(5)) * time.Hour), restarted(int32(random.IntN(3))),
		sidecarRestarted(int32(random.IntN(3))), madeFor(time.Duration(random.IntN(5)) * time.Hour),
	} {
		if random.IntN(3) == 0 {
			change(pod)
		}
	}
	return pod
}

func TestRankingLosesNothingAndIsOfOneMindAboutEachPair(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		pods := make([]*corev1.Pod, random.IntN(50))
		for i := range pods {
			pods[i] = randomPod(random, fmt.Sprint(i))
		}
		before := slices.Clone(pods)
		crowds := map[string]int{"crowded": 3}
		rank := podrank.New(podrank.Options{Now: noon, Neighbours: crowds})
		sorted := owned.Surplus(pods, len(pods), rank)
		if !slices.Equal(pods, before) {
			t.Fatalf("seed %d: the Pods that were given are in another order", seed)
		}
		seen := map[*corev1.Pod]bool{}
		for _, pod := range sorted {
			seen[pod] = true
		}
		if len(sorted) != len(pods) || len(seen) != len(pods) {
			t.Fatalf("seed %d: %d Pods became %d, %d of them different", seed, len(pods), len(sorted), len(seen))
		}
		for _, a := range sorted {
			for _, b := range sorted {
				if rank(a, b) != -rank(b, a) {
					t.Fatalf("seed %d: %s and %s: the order depends on who is asked about first", seed, a.Name, b.Name)
				}
			}
		}
	}
}

func BenchmarkSurplusOfPods(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	pods := make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = randomPod(random, fmt.Sprint(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		ranked(pods, podrank.Options{Now: noon, Neighbours: map[string]int{"crowded": 3}})
	}
}
