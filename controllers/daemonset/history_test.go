// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/revisions"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// numbers returns the revisions as "1 a, 2 b".
func (c *cluster) numbers() string {
	c.t.Helper()
	all := c.allRevisions()
	revisions.Sort(all)
	var text []string
	for _, r := range all {
		template, err := revisions.Template(r)
		if err != nil {
			c.t.Fatal(err)
		}
		text = append(text, fmt.Sprintf("%d %s", r.Revision, template.Spec.Containers[0].Image))
	}
	return strings.Join(text, ", ")
}

func TestTheHistoryHasEachTemplateOnceAndNoMoreThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.start()
		c.create(func(set *appsv1.DaemonSet) { set.Spec.RevisionHistoryLimit = new(int32(1)) })
		for _, step := range []struct{ image, during, after string }{
			{"a", "1 a", "1 a"},
			{"b", "1 a, 2 b", "1 a, 2 b"},
			{"a", "2 b, 3 a", "2 b, 3 a"}, // a rollback
			{"c", "2 b, 3 a, 4 c", "3 a, 4 c"},
		} {
			c.kubelets()
			c.edit(image(step.image))
			if step.image == "c" {
				// A Pod of the revision that goes beyond the limit keeps it.
				step.during = "3 a, 4 c"
			}
			if got := c.numbers(); got != step.during {
				t.Errorf("during the rollout of %s the revisions are %s, want %s", step.image, got, step.during)
			}
			c.turns(10)
			if got := c.numbers(); got != step.after {
				t.Errorf("after the rollout of %s the revisions are %s, want %s", step.image, got, step.after)
			}
		}
	})
}

func TestARevisionStaysWhileAPodIsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.start()
		c.create(onDelete, func(set *appsv1.DaemonSet) { set.Spec.RevisionHistoryLimit = new(int32(0)) })
		c.kubelets()
		c.edit(image("b"))
		c.edit(image("c"))
		if got := c.numbers(); got != "1 a, 3 c" {
			t.Errorf("the revisions are %s, want that of the Pod and that of the DaemonSet", got)
		}
		c.pods.Remove(object.KeyOf(c.allPods()[0]))
		pass(time.Second)
		c.want("when the user deletes the Pod", "node-0=c")
		pass(time.Second)
		c.kubelets()
		if got := c.numbers(); got != "3 c" {
			t.Errorf("then the revisions are %s", got)
		}
	})
}

// duplicate returns a revision with the data of another one.
func duplicate(of *appsv1.ControllerRevision, name, hash string, number int64) *appsv1.ControllerRevision {
	again := of.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{
		Namespace: of.Namespace, Name: name, Labels: map[string]string{"app": "agent", hashLabel: hash}, OwnerReferences: of.OwnerReferences,
	}
	again.Revision = number
	return again
}

func TestRevisionsOfOneTemplateBecomeOneAndTheirPodsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		p := c.start()
		c.create(onDelete)
		c.kubelets()
		c.edit(image("b"))
		p.Stop()
		all := c.allRevisions()
		revisions.Sort(all)
		c.put(duplicate(all[1], "agent-newest", "newest", 9)) // and a Pod of each
		pods := c.allPods()
		pods[0].Labels[hashLabel] = all[1].Labels[hashLabel]
		c.put(pods[0])
		c.start()
		if got := c.numbers(); got != "1 a, 9 b" {
			t.Errorf("the revisions are %s", got)
		}
		of := map[string]string{}
		for _, o := range c.allPods() {
			of[o.Name] = o.Labels[hashLabel]
		}
		if of[pods[0].Name] != "newest" || of[pods[1].Name] != all[0].Labels[hashLabel] {
			t.Errorf("the Pods have the hashes %v; want the first one to be of the revision that stays, and the other as it was", of)
		}
	})
}

// A name says nothing about which Pod has it.
func TestAPodThatTakesTheNameOfAnotherOneKeepsItsRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		p := c.start()
		c.create(onDelete)
		c.kubelets()
		p.Stop()
		first := c.allRevisions()[0]
		c.put(duplicate(first, "agent-newest", "newest", 9))
		was := c.allPods()[0]
		other := was.DeepCopy()
		other.UID, other.OwnerReferences, other.Labels = "other", nil, map[string]string{hashLabel: "theirs"}
		var once sync.Once
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && q.Key == object.KeyOf(was) {
				once.Do(func() {
					c.pods.Remove(q.Key)
					if err := c.pods.Put(other); err != nil {
						t.Error(err)
					}
				})
			}
			return nil
		})
		p = c.start()
		now, err := fakeapi.Read[*corev1.Pod](c.pods, object.KeyOf(was))
		if err != nil || now.UID != "other" || now.Labels[hashLabel] != "theirs" {
			t.Errorf("the Pod that has taken the name is %+v (%v)", now.ObjectMeta, err)
		}
		if got := c.numbers(); got != "9 a" {
			t.Errorf("the revisions are %s", got)
		}
		if warnings := p.Warnings(); len(warnings) != 0 {
			t.Errorf("the log says %q", warnings)
		}
	})
}

// A Pod counts as an old one if its revision is deleted before it has the label of the other one.
func TestNoRolloutReplacesThePodsOfARevisionThatIsMerged(t *testing.T) {
	conflict := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "changed meanwhile"}
	for name, conflicts := range map[string]int{"at once": 0, "after a conflict": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3)
				p := c.start()
				c.create()
				c.kubelets()
				p.Stop()
				before := c.allPods()
				c.put(duplicate(c.allRevisions()[0], "agent-newest", "newest", 9))
				if conflicts > 0 {
					c.pods.RefuseNext(conflicts, "patch", conflict)
				}
				c.start()
				pass(time.Minute)
				for _, o := range before {
					now, err := fakeapi.Read[*corev1.Pod](c.pods, object.KeyOf(o))
					if err != nil || now.UID != o.UID || now.DeletionTimestamp != nil || now.Labels[hashLabel] != "newest" {
						t.Errorf("Pod %s is %+v (%v)", o.Name, now.ObjectMeta, err)
					}
				}
				if got := c.numbers(); got != "9 a" {
					t.Errorf("the revisions are %s", got)
				}
			})
		})
	}
}

func TestARevisionOfAnOldClusterGetsItsLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		p := c.start()
		c.create()
		c.kubelets()
		p.Stop()
		r := c.allRevisions()[0]
		hash := r.Labels[hashLabel]
		delete(r.Labels, hashLabel)
		c.put(r)
		set := c.set()
		set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "4"}
		c.put(set)
		o := c.allPods()[0]
		o.Labels = map[string]string{"app": "agent", generationLabel: "4"}
		c.put(o)
		c.start()
		if got := c.allRevisions()[0].Labels[hashLabel]; got != r.Name || hash == "" {
			t.Errorf("the label is %q, want %q", got, r.Name)
		}
		c.want("a Pod of the generation stays", "node-0=a")
	})
}

func TestARevisionOfAnotherOwnerRaisesTheCollisionCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		p := c.start()
		c.create()
		first := c.allRevisions()[0]
		p.Stop()
		c.sets.Remove(agentKey)
		for _, o := range c.allPods() {
			c.pods.Remove(object.KeyOf(o))
		}
		foreign := duplicate(first, first.Name, "h", 1)
		foreign.OwnerReferences[0].UID = "somebody-else"
		c.revisions.Remove(object.KeyOf(first))
		c.put(foreign)
		c.start()
		c.create()
		if n := c.set().Status.CollisionCount; n == nil || *n != 1 {
			t.Errorf("the collision count is %v, want 1", n)
		}
		hash := ""
		for _, r := range c.allRevisions() {
			if r.Name != first.Name {
				hash = r.Labels[hashLabel]
			}
		}
		if got := c.allPods()[0].Labels[hashLabel]; hash == "" || got != hash {
			t.Errorf("the Pod has the hash %q, the revision %q", got, hash)
		}
	})
}

func TestPodsAndRevisionsAreAdoptedAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		p := c.start()
		c.create()
		c.kubelets()
		p.Stop()
		// The owner goes, and what it owned stays: kubectl delete --cascade=orphan.
		c.sets.Remove(agentKey)
		var before []string
		for _, o := range c.allPods() {
			before = append(before, o.Name)
			o.OwnerReferences = nil
			c.put(o)
		}
		r := c.allRevisions()[0]
		r.OwnerReferences = nil
		c.put(r)
		c.start()
		c.create()
		var after []string
		for _, o := range c.allPods() {
			after = append(after, o.Name)
			if !metav1.IsControlledBy(o, c.set()) {
				t.Errorf("Pod %s was not adopted", o.Name)
			}
		}
		if !slices.Equal(before, after) || !metav1.IsControlledBy(c.allRevisions()[0], c.set()) || len(c.allRevisions()) != 1 {
			t.Errorf("the Pods were %q and are %q", before, after)
		}
		// A Pod that is no longer selected is released, and replaced.
		if err := fakeapi.Change(c.pods, object.KeyOf(c.podOn("node-0")), func(o *corev1.Pod) { o.Labels = nil }); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		c.want("with one that was released", "node-0=a,a node-1=a")
		// A late revision without an owner is adopted too.
		late := duplicate(c.allRevisions()[0], "agent-late", "late", 1)
		late.OwnerReferences, late.Data.Raw = nil, []byte(strings.ReplaceAll(string(late.Data.Raw), `"image":"a"`, `"image":"z"`))
		c.put(late)
		if got := c.numbers(); got != "1 z, 2 a" {
			t.Errorf("with a late revision the history is %s", got)
		}
	})
}
