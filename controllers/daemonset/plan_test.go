// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// minReady is that of the scenes.
const minReady = 10 * time.Second

// scene returns a view of a text, one line for a node:
//
//	n0: old+ new-
//
// A Pod is old or new: of an older template, or of the revision. Then comes how it is: + available,
// ~ ready and not available yet, - not ready, x failed, $ succeeded. A d after that says that it is
// being deleted, a u that it is not bound yet. The Pods of a node are given by age, the oldest first.
//
// A node can have marks in parentheses: (none) fits no Pod, (stay) keeps Pods that are there, (dead)
// was not ready before the revision, (sick) is not ready since later. (gone) does not exist.
func scene(t *testing.T, text string, change ...func(*appsv1.DaemonSet)) view {
	t.Helper()
	v := view{
		set:      agent(append([]func(*appsv1.DaemonSet){func(s *appsv1.DaemonSet) { s.Spec.MinReadySeconds = int32(minReady.Seconds()) }}, change...)...),
		revision: revision{hash: "new", generation: "7", since: now.Add(-time.Minute)},
		failed:   &backoff{}, burst: 250, now: now,
	}
	var all []*pod
	for line := range strings.Lines(text) {
		head, pods, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		name, mark, _ := strings.Cut(head, " ")
		at := place{fit: fit{run: true, stay: true}, name: name, uid: types.UID(name)}
		switch mark {
		case "":
		case "(none)":
			at.fit = fit{}
		case "(stay)":
			at.fit = fit{stay: true}
		case "(dead)":
			at.unready = now.Add(-time.Hour)
		case "(sick)":
			at.unready = now.Add(-time.Second)
		case "(gone)":
		default:
			t.Fatalf("the node %q has an unknown mark", head)
		}
		if mark != "(gone)" {
			v.places = append(v.places, at)
		}
		for i, word := range strings.Fields(pods) {
			all = append(all, podOf(t, name, i, word))
		}
	}
	v.pods = byNode(all)
	return v
}

// podOf returns the Pod that a word of a scene describes.
func podOf(t *testing.T, node string, i int, word string) *pod {
	t.Helper()
	p := &pod{
		namespace: "ops", name: fmt.Sprintf("%s/%d:%s", node, i, word), uid: types.UID(fmt.Sprint(node, i)),
		node: node, bound: true, created: now.Add(time.Duration(i-100) * time.Minute), phase: corev1.PodRunning, hash: word[:3], generation: "6",
	}
	for _, mark := range word[3:] {
		switch mark {
		case '+':
			p.ready, p.readySince = true, now.Add(-time.Hour)
		case '~':
			p.ready, p.readySince = true, now.Add(-time.Second)
		case '-':
		case 'x':
			p.phase = corev1.PodFailed
		case '$':
			p.phase = corev1.PodSucceeded
		case 'd':
			p.deleting = true
		case 'u':
			p.bound, p.phase = false, corev1.PodPending
		default:
			t.Fatalf("the Pod %q has an unknown mark", word)
		}
	}
	return p
}

// String returns what a plan does: "create n0 n1; delete n2/0:old+".
func (p plan) String() string {
	var did []string
	if len(p.create) > 0 {
		did = append(did, "create "+strings.Join(p.create, " "))
	}
	if len(p.remove) > 0 {
		names := make([]string, 0, len(p.remove))
		for _, one := range p.remove {
			names = append(names, one.pod.name)
		}
		did = append(did, "delete "+strings.Join(names, " "))
	}
	return strings.Join(did, "; ")
}

var (
	surgeOne    = limits(intstr.FromInt32(1), intstr.FromInt32(0))
	unavailable = func(n int32) func(*appsv1.DaemonSet) { return limits(intstr.FromInt32(0), intstr.FromInt32(n)) }
	onDelete    = func(s *appsv1.DaemonSet) {
		s.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	}
)

func TestEachNodeGetsWhatItMissesAndLosesWhatIsTooMuch(t *testing.T) {
	for _, test := range []struct{ name, scene, want string }{
		{"an empty node", "n0:", "create n0"},
		{"a node that does not fit", "n0 (none):", ""},
		{"a node that keeps Pods gets none", "n0 (stay):", ""},
		{"a node that keeps Pods keeps one", "n0 (stay): new-", ""},
		{"a node that does not fit loses all", "n0 (none): old+ new- new+d", "delete n0/0:old+ n0/1:new-"},
		{"a Pod that is being deleted is waited for", "n0: new+d", ""},
		{"one that has ended and is being deleted is not", "n0: newxd", "create n0"},
		{"the oldest of several stays", "n0: new- new+ new+", "delete n0/1:new+ n0/2:new+"},
		{"one that is bound stays before one that is not", "n0: new-u new-", "delete n0/0:new-u"},
		{"one that has failed", "n0: newx", "delete n0/0:newx"},
		{"one that has succeeded", "n0: new$", "delete n0/0:new$"},
		{"one that has failed beside one that runs", "n0: newx new+", "delete n0/0:newx"},
		{"one that nobody can bind", "n0 (gone): new-u\nn1: new+", "delete n0/0:new-u"},
		{"one of a node that is gone is for another controller", "n0 (gone): new+\nn1: new+", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := decide(scene(t, test.scene)).String(); got != test.want {
				t.Errorf("the plan is %q, want %q", got, test.want)
			}
		})
	}
}

func TestWithSurgeTwoPodsMayRunOnANode(t *testing.T) {
	for _, test := range []struct{ name, scene, want string }{
		{"an empty node", "n0:", "create n0"},
		{"a Pod that is being deleted is not waited for", "n0: old+d", "create n0"},
		{"not on a node that only keeps Pods", "n0 (stay): old+d", ""},
		{"an old one stays until the new one is available", "n0: old+ new~", ""},
		{"and goes then", "n0: old+ new+", "delete n0/0:old+"},
		{"an old one that is not ready goes at once", "n0: old- new-", "delete n0/0:old-"},
		{"of several of one sort the oldest stays", "n0: old+ old+ new- new-", "delete n0/1:old+ n0/3:new-"},
		{"one that has failed", "n0: newx old+", "delete n0/0:newx"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := decide(scene(t, test.scene, surgeOne)).String(); got != test.want {
				t.Errorf("the plan is %q, want %q", got, test.want)
			}
		})
	}
}

func TestARolloutKeepsToItsLimits(t *testing.T) {
	percent := func(surge, unavailable string) func(*appsv1.DaemonSet) {
		return limits(intstr.FromString(surge), intstr.FromString(unavailable))
	}
	const three = "n0: old+\nn1: old+\nn2: old+\n"
	for _, test := range []struct {
		name, scene, want string
		limits            func(*appsv1.DaemonSet)
	}{
		{"one at a time", three, "delete n0/0:old+", unavailable(1)},
		{"all at once", three, "delete n0/0:old+ n1/0:old+ n2/0:old+", unavailable(5)},
		{"a percentage rounds up", three, "delete n0/0:old+ n1/0:old+", percent("0%", "34%")},
		{"without limits it is one", three, "delete n0/0:old+", percent("0%", "0%")},
		{"a new Pod that is not available counts", "n0: old+\nn1: new~\nn2: old+", "", unavailable(1)},
		{"a node whose Pod is being deleted counts", "n0: old+\nn1: old+d\nn2: old+", "", unavailable(1)},
		{"old Pods that are not ready are replaced at once", "n0: old+\nn1: old-\nn2: old-", "delete n1/0:old- n2/0:old-", unavailable(1)},
		{"and count", "n0: old+\nn1: old-\nn2: old+", "delete n1/0:old- n0/0:old+", unavailable(2)},
		{"old Pods that are not available yet go first", "n0: old+\nn1: old~\nn2: old+", "delete n1/0:old~", unavailable(1)},
		{"but not all at once", "n0: old~\nn1: old~\nn2: old~", "delete n0/0:old~", unavailable(1)},
		{"and they count", "n0: old+\nn1: old~\nn2: new-", "delete n1/0:old~", unavailable(2)},
		{"a node that died before does not count", "n0 (dead): new-\nn1: old+\nn2 (dead): old+d", "delete n1/0:old+", unavailable(1)},
		{"a node that gets sick counts", "n0 (sick): new-\nn1: old+", "", unavailable(1)},
		{"a Pod on a node that only keeps it is replaced too", "n0 (stay): old+", "delete n0/0:old+", unavailable(1)},
		{"a Pod on a node that is gone counts", "n0 (gone): new-\nn1: old+", "", unavailable(1)},
		{"nothing is left to do", "n0: new+\nn1: new+", "", unavailable(1)},
		{"OnDelete waits for users", three, "", onDelete},
		{"OnDelete replaces what users delete", "n0:\nn1: old+", "create n0", onDelete},

		{"surge: one at a time", three, "create n0", surgeOne},
		{"surge: as many as the percentage", three, "create n0 n1", percent("50%", "0%")},
		{"surge: a new Pod that is not available counts", "n0: old+ new~\nn1: old+", "", surgeOne},
		{"surge: an available one does not", "n0: old+ new+\nn1: old+", "delete n0/0:old+", surgeOne},
		{"surge: old Pods that are not ready get theirs at once", "n0: old-\nn1: old-\nn2: old+", "create n0 n1 n2", surgeOne},
		{"surge: old Pods that are not available yet come first", "n0: old+\nn1: old~\nn2: old~", "create n1", surgeOne},
		{"surge: a node that died before does not count", "n0 (dead): old- new-d\nn1 (dead): new-\nn2: old+", "create n0 n2", surgeOne},
		{"surge: an old Pod on a node that wants none serves until others do", "n0 (stay): old+\nn1: new-", "", surgeOne},
		{"surge: and goes then", "n0 (stay): old+\nn1: new+", "delete n0/0:old+", surgeOne},
		{"surge: and at once if it is not available", "n0 (stay): old-\nn1: new-", "delete n0/0:old-", surgeOne},
		{"surge: a Pod on a node that is gone stops nothing", "n0 (gone): old-\nn1: old+", "create n1; delete n0/0:old-", surgeOne},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := decide(scene(t, test.scene, test.limits)).String(); got != test.want {
				t.Errorf("the plan is %q, want %q", got, test.want)
			}
		})
	}
}

// What is deleted although the limits allow nothing, is deleted only if it is still not available.
func TestARolloutDeletesBeyondItsLimitsOnlyWhatIsNotAvailable(t *testing.T) {
	for _, test := range []struct {
		name, scene, want string
		limits            func(*appsv1.DaemonSet)
	}{
		{"within maxUnavailable, and beyond it", "n0: old+\nn1: old-\nn2: old~\nn3: old-", "n1/0:old- n3/0:old-", unavailable(3)},
		{"surge: the successor is not available", "n0: old- new-", "n0/0:old-", surgeOne},
		{"surge: the successor is available", "n0: old- new+", "", surgeOne},
		{"surge: a node that wants none, and has one that serves", "n0 (stay): old+\nn1: new+", "", surgeOne},
		{"surge: a node that wants none, and has one that does not", "n0 (stay): old-\nn1: new-", "n0/0:old-", surgeOne},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p plan
			for _, one := range decide(scene(t, test.scene, test.limits)).remove {
				if one.why == broken {
					p.remove = append(p.remove, one)
				}
			}
			if got := strings.TrimPrefix(p.String(), "delete "); got != test.want {
				t.Errorf("%q are deleted if they have not changed, want %q", got, test.want)
			}
		})
	}
}

func TestAPodOfTheGenerationIsUpToDateWhateverItsHash(t *testing.T) {
	for _, strategy := range []func(*appsv1.DaemonSet){unavailable(1), surgeOne} {
		v := scene(t, "n0: old+\nn1: old+", strategy)
		for _, on := range v.pods {
			on[0].generation = "7"
		}
		if got := decide(v).String(); got != "" {
			t.Errorf("the plan is %q, want nothing: only the hash has changed", got)
		}
		v.revision.generation = ""
		if got := decide(v).String(); got == "" {
			t.Error("a Pod of another hash counts as new, and the DaemonSet has no generation")
		}
	}
}

func TestARunCreatesAndDeletesNoMoreThanItsBurst(t *testing.T) {
	var empty, full strings.Builder
	for i := range 5 {
		fmt.Fprintf(&empty, "n%d:\n", i)
		fmt.Fprintf(&full, "m%d (none): new+\n", i)
	}
	v := scene(t, empty.String()+full.String())
	v.burst = 3
	if p := decide(v); len(p.create) != 3 || len(p.remove) != 3 {
		t.Errorf("the plan is %q, want 3 of each", p)
	}
}

func TestAPodThatFailsAgainIsKeptForLongerAndLonger(t *testing.T) {
	for want, strategy := range map[string]func(*appsv1.DaemonSet){
		"delete n0/0:newx":            unavailable(1),
		"create n0; delete n0/0:newx": surgeOne, // a Pod that is being deleted is not waited for
	} {
		v := scene(t, "n0: newx", strategy)
		start, waited := now, []float64{}
		for range 13 {
			p := decide(v)
			if p.String() == "" {
				waited = append(waited, p.after.Seconds())
				if code := p.reasons[0].Code; code != codeBackOff {
					t.Errorf("the reason is %s", code)
				}
				v.now = v.now.Add(p.after)
				p = decide(v)
			}
			if p.String() != want || p.remove[0].why != failed {
				t.Fatalf("after %s the plan is %q", v.now.Sub(start), p)
			}
			v.failed.note(p.remove[0].node, v.now)
		}
		seconds := []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900}
		if !slices.Equal(waited, seconds) {
			t.Errorf("it waited %v seconds, want %v", waited, seconds)
		}
		v.now = v.now.Add(backoffKept + time.Second)
		v.failed.begin(0, v.now)
		if len(v.failed.of) != 0 {
			t.Error("it remembers a failure of long ago")
		}
	}
}

func TestABackOffIsThatOfOneTemplateAndOneNode(t *testing.T) {
	var b backoff
	b.begin(1, now)
	b.note("n0", now)
	if b.left("n0", now) != time.Second || b.left("n1", now) != 0 {
		t.Errorf("%s and %s are left", b.left("n0", now), b.left("n1", now))
	}
	b.begin(1, now)
	if b.left("n0", now) != time.Second {
		t.Error("another run forgets it")
	}
	b.begin(2, now)
	if b.left("n0", now) != 0 {
		t.Error("it counts for another template")
	}
}

func TestTheNextRunIsWhenAPodBecomesAvailable(t *testing.T) {
	v := scene(t, "n0: new+\nn1: new~\nn2: new-")
	if p := decide(v); p.after != 9*time.Second {
		t.Errorf("it runs again after %s, want 9 s", p.after)
	}
	v.pods["n1"][0].readySince = now.Add(time.Minute) // by a clock that is ahead
	if p := decide(v); p.after != 70*time.Second {
		t.Errorf("it runs again after %s, want 70 s", p.after)
	}
	v.pods["n1"][0].readySince = time.Time{}
	if p := decide(v); p.after != minReady {
		t.Errorf("it runs again after %s, want %s", p.after, minReady)
	}
}

func TestLimitsThatCannotBeReadStopRolloutsAlone(t *testing.T) {
	v := scene(t, "n0: old+\nn1:", limits(intstr.FromInt32(0), intstr.FromString("99999999999%")))
	p := decide(v)
	if p.String() != "create n1" || p.invalid == nil || p.reasons[0].Code != codeInvalid ||
		!strings.Contains(p.invalid.Error(), `spec.updateStrategy.rollingUpdate.maxUnavailable is "99999999999%"`) {
		t.Errorf("the plan is %q with the error %v and the reasons %v", p, p.invalid, p.reasons)
	}
}

func TestReasonsSayWhyThereIsNoPod(t *testing.T) {
	for _, test := range []struct {
		name, scene, code, text string
		change                  func(*appsv1.DaemonSet)
	}{
		{"no node fits", "n0 (none):", codeNoNode, "none of 1 node fits the node selector, the affinity and the tolerations of the template", unavailable(1)},
		{"Pods go", "n0: new+d\nn1: new+", codeTerminating, "the Pods on n0 are being deleted, and their successors are created when they are gone", unavailable(1)},
		{"users update", "n0: old+\nn1: new+", codeOnDelete, "1 Pod has an older template, and updateStrategy is OnDelete", onDelete},
		{"nodes are in the way", "n0: new-\nn1: old+\nn2: new~", codeRolloutWaits, "the rollout waits for 2 nodes without an available Pod, and maxUnavailable is 2: n0, n2", unavailable(2)},
		{"new Pods are in the way", "n0: old+ new~\nn1: old+", codeRolloutWaits, "the rollout waits for 1 node without an available Pod, and maxSurge is 1: n0", surgeOne},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := decide(scene(t, test.scene, test.change))
			if len(p.reasons) != 1 || p.reasons[0].Code != test.code || p.reasons[0].Sentence() != test.text {
				for _, r := range p.reasons {
					t.Logf("%s: %s", r.Code, r.Sentence())
				}
				t.Errorf("want %s: %s", test.code, test.text)
			}
		})
	}
	v := scene(t, "n0: new-u")
	v.pods["n0"][0].homeless = "0/1 nodes are available: 1 Insufficient cpu."
	if p := decide(v); len(p.reasons) != 1 || p.reasons[0].Sentence() != "1 Pod has no node: 0/1 nodes are available: 1 Insufficient cpu." {
		t.Errorf("the reasons are %v", p.reasons)
	}
	if p := decide(scene(t, "n0: new+\nn1: new+")); len(p.reasons) != 0 {
		t.Errorf("nothing is missing, and the reasons are %v", p.reasons)
	}
}
