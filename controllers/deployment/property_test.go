// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// drawModel begins with a Deployment with random limits that has been rolled out.
func drawModel(t *rapid.T, d *appsv1.Deployment) *model {
	m := newModel(d, func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) })
	d.Spec.Template = template("1")
	return m
}

func drawRolling(t *rapid.T) *appsv1.Deployment {
	d := deployment(int32(rapid.IntRange(0, 12).Draw(t, "replicas")))
	surge := intstr.FromInt32(int32(rapid.IntRange(0, 4).Draw(t, "surge")))
	unavailable := intstr.FromInt32(int32(rapid.IntRange(0, 4).Draw(t, "unavailable")))
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
	return d
}

// steps are what happens by itself, in any order.
func (m *model) steps(t *rapid.T) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"our controller runs": func(*rapid.T) { m.reconcile() },
		"a set's controller runs": func(t *rapid.T) {
			uids := slices.Sorted(maps.Keys(last(m.sets)))
			if len(uids) == 0 {
				t.Skip("no set")
			}
			uid := rapid.SampledFrom(uids).Draw(t, "set")
			m.runSet(uid, m.choose("set's version", m.acted[uid], len(m.sets)-1), m.choose("most", 1, 20))
		},
		"pods get on": func(t *rapid.T) {
			m.kubelet(func(modelPod) bool { return rapid.Bool().Draw(t, "gets on") })
		},
	}
}

// arrives checks that everything comes to rest where the Deployment wants it.
func (m *model) arrives(t *rapid.T) {
	if !m.settle() {
		t.Fatal("it never comes to rest")
	}
	d := m.deployment()
	image := d.Spec.Template.Spec.Containers[0].Image
	for _, pod := range last(m.pods) {
		if pod.version != image || !pod.ready || pod.terminating {
			t.Errorf("pod %+v, want only working ones of %s", pod, image)
		}
	}
	if got := len(last(m.pods)); got != int(*d.Spec.Replicas) {
		t.Errorf("%d Pods, want %d", got, *d.Spec.Replicas)
	}
	if c := condition(&d.Status, appsv1.DeploymentProgressing); !complete(d, &d.Status) || c == nil || c.Reason != reasonComplete {
		t.Errorf("status = %+v, want it complete", d.Status)
	}
	if limit := int(*d.Spec.RevisionHistoryLimit); len(last(m.sets)) > limit+1 {
		t.Errorf("%d sets are kept, want %d old ones", len(last(m.sets)), limit)
	}
}

// TestRollingUpdateKeepsItsBoundsInAnyOrderOfEvents lets users change templates at
// any moment, and looks at each single change of a Pod.
func TestRollingUpdateKeepsItsBoundsInAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t, drawRolling(t))
		if !m.settle() {
			t.Fatal("the first rollout does not end")
		}
		l := limits(m.deployment())
		m.changed = func(what string) {
			if pods := m.count("", living); pods > l.Most() {
				t.Fatalf("%s: %d Pods, at most %d are allowed", what, pods, l.Most())
			}
			if ready := m.count("", func(p modelPod) bool { return p.ready && !p.terminating }); ready < l.Least() {
				t.Fatalf("%s: %d available Pods, at least %d are wanted", what, ready, l.Least())
			}
		}
		steps := m.steps(t)
		steps["a user changes the template"] = func(t *rapid.T) {
			version := rapid.SampledFrom([]string{"1", "2", "3", "bad"}).Draw(t, "version")
			m.edit(func(d *appsv1.Deployment) { d.Spec.Template = template(version) })
		}
		t.Repeat(steps)
		m.edit(func(d *appsv1.Deployment) { d.Spec.Template = template("3") })
		m.arrives(t)
	})
}

// TestNoPodIsMadeBeyondTheSurgeWhateverUsersDo lets users scale, pause, resume and
// change templates at any moment, and Pods fail.
func TestNoPodIsMadeBeyondTheSurgeWhateverUsersDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t, drawRolling(t))
		if !m.settle() {
			t.Fatal("the first rollout does not end")
		}
		// A Deployment that was made smaller has too many Pods for a while, and its
		// controllers may act on what they know of before.
		allowed := limits(m.deployment()).Most()
		m.changed = func(what string) {
			if pods := m.count("", living); pods > allowed {
				t.Fatalf("%s: %d Pods, at most %d are allowed", what, pods, allowed)
			}
		}
		steps := m.steps(t)
		steps["a user changes the template"] = func(t *rapid.T) {
			version := rapid.SampledFrom([]string{"1", "2", "3", "bad"}).Draw(t, "version")
			m.edit(func(d *appsv1.Deployment) { d.Spec.Template = template(version) })
		}
		steps["a user scales"] = func(t *rapid.T) {
			replicas := int32(rapid.IntRange(0, 20).Draw(t, "replicas"))
			m.edit(func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
			allowed = max(allowed, limits(m.deployment()).Most())
		}
		steps["a user pauses or resumes"] = func(*rapid.T) {
			m.edit(func(d *appsv1.Deployment) { d.Spec.Paused = !d.Spec.Paused })
		}
		steps["a pod fails"] = func(t *rapid.T) {
			pods := slices.Clone(last(m.pods))
			if len(pods) == 0 {
				t.Skip("no Pod")
			}
			pods[m.choose("pod", 0, len(pods)-1)].ready = false
			m.setPods(pods, "failure")
		}
		steps["everything comes to rest"] = func(t *rapid.T) {
			if !m.settle() {
				t.Fatal("it never comes to rest")
			}
			allowed = limits(m.deployment()).Most()
			m.changed("rest")
		}
		t.Repeat(steps)
		m.edit(func(d *appsv1.Deployment) { d.Spec.Template, d.Spec.Paused = template("3"), false })
		m.arrives(t)
	})
}

// TestRecreateNeverMixesTemplates counts terminating Pods too: their containers
// still run.
func TestRecreateNeverMixesTemplates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t, recreating(int32(rapid.IntRange(0, 5).Draw(t, "replicas"))))
		m.changed = func(what string) {
			of := map[types.UID]bool{}
			for _, pod := range last(m.pods) {
				of[pod.set] = true
			}
			if len(of) > 1 {
				t.Fatalf("%s: Pods of %d templates live at the same time", what, len(of))
			}
		}
		steps := m.steps(t)
		steps["a user changes the template"] = func(t *rapid.T) {
			version := rapid.SampledFrom([]string{"1", "2", "3", "bad"}).Draw(t, "version")
			m.edit(func(d *appsv1.Deployment) { d.Spec.Template = template(version) })
		}
		steps["a user scales"] = func(t *rapid.T) {
			replicas := int32(rapid.IntRange(0, 5).Draw(t, "replicas"))
			m.edit(func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
		}
		t.Repeat(steps)
		m.edit(func(d *appsv1.Deployment) { d.Spec.Template = template("3") })
		m.arrives(t)
	})
}
