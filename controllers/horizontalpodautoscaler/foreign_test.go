// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// annotated sets the annotation about the Pods of others.
func annotated(value string) func(*autoscalingv2.HorizontalPodAutoscaler) {
	return func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
		hpa.Annotations = map[string]string{ForeignPodsAnnotation: value}
	}
}

// stranger adds a Pod with the labels of the Deployment web, which a Job controls.
func (c *cluster) stranger(name, job string) {
	c.t.Helper()
	p := running(name, map[string]string{"app": "web"})
	if p.OwnerReferences = controlledBy("Job", job); job == "" {
		p.OwnerReferences = nil
	}
	if err := c.pods.Put(p); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func TestWhichPodsAreATargets(t *testing.T) {
	for _, test := range []struct {
		target, owner, hash string
		want                bool
	}{
		{"apps/v1 Deployment web", "ReplicaSet web-5d", "5d", true},
		{"apps/v1 Deployment web", "ReplicaSet web-x-5d", "5d", false}, // of the Deployment web-x
		{"apps/v1 Deployment web", "ReplicaSet web-5d", "", false},
		{"apps/v1 Deployment web", "ReplicaSet other", "5d", false},
		{"apps/v1 Deployment web", "Job web-5d", "5d", false},
		{"apps/v1 Deployment web", "", "5d", false},
		{"apps/v1 StatefulSet web", "StatefulSet web", "", true},
		{"apps/v1 StatefulSet web", "StatefulSet other", "", false},
		{"apps/v1 ReplicaSet web", "ReplicaSet web", "5d", true},
		{"apps/v1 ReplicaSet web", "", "5d", false},
		{"v1 ReplicationController web", "ReplicationController web", "", true},
		{"v1 ReplicationController web", "Job import", "", false},
		// Which Pods belong to these is not known.
		{"example.com/v1 Rollout web", "ReplicaSet web-5d", "5d", true},
		{"example.com/v1 Deployment web", "Job import", "", true},
		{"example.com/v1 Rollout web", "", "", true},
	} {
		part := strings.Fields(test.target)
		p := running("p", map[string]string{"pod-template-hash": test.hash})
		if kind, name, is := strings.Cut(test.owner, " "); is {
			p.OwnerReferences = controlledBy(kind, name)
		}
		own, others := divide([]*corev1.Pod{p}, autoscalingv2.CrossVersionObjectReference{APIVersion: part[0], Kind: part[1], Name: part[2]}, types.UID(part[2]))
		if (len(own) == 1) != test.want || others.pods != 1-len(own) {
			t.Errorf("of %s, a Pod of %q with the hash %q is its own: %d, and of others: %d; want own: %t", test.target, test.owner, test.hash, len(own), others.pods, test.want)
		}
	}
}

func TestPodsOfOthersDoNotCountIfTheAnnotationSaysSo(t *testing.T) {
	for _, test := range []struct {
		value     string
		size      int32
		condition string
	}{
		{"", 2, "2 Pods counted by their metrics, 3 without a metric (backup-0, backup-1, bare); the selector of the target selects 3 Pods of others too: Job backup, no controller"},
		{CountForeignPods, 2, "the selector of the target selects 3 Pods of others too: Job backup, no controller"},
		{IgnoreForeignPods, 4, "2 Pods counted by their metrics; left out: 3 Pods of others that the selector of the target selects (Job backup, no controller)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.deploy("web", 2)
			c.uses("web", 2, "100m") // twice the target
			c.stranger("backup-0", "backup")
			c.stranger("backup-1", "backup")
			c.stranger("bare", "")
			change := func(*autoscalingv2.HorizontalPodAutoscaler) {}
			if test.value != "" {
				change = annotated(test.value)
			}
			c.autoscaler("web", 1, 10, change)
			c.start()
			pass(time.Second)
			c.wantCondition(test.value, "web", test.condition)
			c.want(fmt.Sprintf("with the annotation %q", test.value), "web", test.size)
			if notes := c.notes(eventAnnotation); len(notes) != 0 {
				t.Errorf("the Events say %q", notes)
			}
		})
	}
}

// A Pod of another workload that is idle, or busy, moves nothing.
func TestMetricsOfThePodsOfOthersDoNotCount(t *testing.T) {
	for _, theirs := range []string{"0", "100", "-", "missing request"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.deploy("web", 2)
			c.stranger("backup-0", "backup")
			if theirs == "missing request" {
				p := running("backup-0", map[string]string{"app": "web"})
				p.OwnerReferences, p.Spec.Containers[0].Resources.Requests = controlledBy("Job", "backup"), nil
				if err := c.pods.Put(p); err != nil {
					t.Fatal(err)
				}
			}
			use := map[string]string{"web-1-0": "50m", "web-1-1": "50m", "backup-0": theirs}
			switch theirs {
			case "-":
				delete(use, "backup-0")
			case "missing request":
				use["backup-0"] = "1"
			}
			c.podMetrics(use)
			c.autoscaler("web", 1, 10, annotated(IgnoreForeignPods))
			c.start()
			pass(10 * time.Minute)
			c.want("with a Pod of others that uses "+theirs, "web", 2)
			c.wantCondition(theirs, "web", "ScalingActive=True ValidMetricFound")
		})
	}
}

func TestWithPodsOfOthersAloneTheConditionNamesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 0)
		c.resize("web", 2) // none of its Pods is there yet
		c.stranger("backup-0", "backup")
		c.podMetrics(map[string]string{"backup-0": "1"})
		c.autoscaler("web", 1, 10, annotated(IgnoreForeignPods))
		c.start()
		pass(time.Minute)
		c.want("without Pods of its own", "web", 2)
		c.wantCondition("without Pods of its own", "web", "no pods returned by selector while calculating replica count; "+
			"left out: 1 Pod of others that the selector of the target selects (Job backup)")
	})
}

func TestAnAnnotationThatCannotBeObeyedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		c.autoscaler("web", 1, 10, annotated("yes"))
		p := c.process()
		pass(time.Minute)
		const want = `the annotation setpoint.io/foreign-pods is "yes"; write "ignore", or "count", which is what happens now`
		if notes := c.notes(eventAnnotation); len(notes) != 1 || notes[0] != want {
			t.Errorf("the Events say %q", notes)
		}
		if got := strings.Join(p.Reasons("shop/web"), "\n"); !strings.Contains(got, codeAnnotation+": Pods of other workloads count, although there is an annotation about them: "+want) {
			t.Errorf("the reasons are %s", got)
		}
		c.wantCondition("meanwhile", "web", "ScalingActive=True ValidMetricFound")
	})
	hpa := autoscaler(1, 10, annotated(IgnoreForeignPods))
	hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v1", Kind: "Rollout", Name: "web"}
	const want = "the annotation setpoint.io/foreign-pods has no effect: which Pods belong to a Rollout is not known"
	if ignores, problem := ignoresForeign(hpa); ignores || problem != want {
		t.Errorf("it ignores: %t, and says %q", ignores, problem)
	}
}

// Two Deployments have the same labels, such as a canary and the stable one.
func TestTwoTargetsWithTheSameLabelsAreScaledIfBothIgnoreThePodsOfOthers(t *testing.T) {
	for _, test := range []struct{ stable, canary string }{
		{IgnoreForeignPods, IgnoreForeignPods}, {IgnoreForeignPods, CountForeignPods}, {CountForeignPods, IgnoreForeignPods}, {CountForeignPods, CountForeignPods},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.deploy("web", 2)
			c.deploy("canary", 2)
			c.relabel("canary", "web")
			c.podMetrics(map[string]string{"web-1-0": "50m", "web-1-1": "50m", "canary-1-0": "50m", "canary-1-1": "50m"})
			c.autoscaler("web", 1, 10, annotated(test.stable))
			c.autoscaler("canary", 1, 10, annotated(test.canary))
			c.start()
			pass(time.Minute)
			c.podMetrics(map[string]string{"web-1-0": "100m", "web-1-1": "100m", "canary-1-0": "10m", "canary-1-1": "10m"})
			pass(10 * time.Minute)
			if test.stable == IgnoreForeignPods && test.canary == IgnoreForeignPods {
				c.want("each by its own Pods", "web", 4)
				c.want("each by its own Pods", "canary", 1)
				return
			}
			c.want("both count the Pods of one", "web", 2)
			c.wantCondition("both count the Pods of one", "web", "ScalingActive=False AmbiguousSelector")
			c.wantCondition("both count the Pods of one", "canary", "ScalingActive=False AmbiguousSelector")
		})
	}
}

func TestTwoForOneTargetStayAmbiguous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "100m")
		same := func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.Name = "web" }
		c.options.Workers = 1
		c.autoscaler("one", 1, 10, same, annotated(IgnoreForeignPods))
		c.autoscaler("two", 1, 10, same, annotated(IgnoreForeignPods))
		c.start()
		pass(time.Minute)
		c.wantCondition("with two", "one", "ScalingActive=False AmbiguousSelector")
		c.wantCondition("with two", "two", "ScalingActive=False AmbiguousSelector")
	})
}

// relabel gives a Deployment and its Pods the labels of another one.
func (c *cluster) relabel(name, as string) {
	c.t.Helper()
	err := fakeapi.Change(c.deployments, object.Key{Namespace: "shop", Name: name}, func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = as })
	for i := range 2 {
		err = errors.Join(err, fakeapi.Change(c.pods, object.Key{Namespace: "shop", Name: fmt.Sprintf("%s-1-%d", name, i)}, func(p *corev1.Pod) { p.Labels["app"] = as }))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}
