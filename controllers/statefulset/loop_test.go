// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// bubble runs a scene with a cluster in which the controller runs.
func bubble(t *testing.T, scene func(*cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.supervise()
		c.start()
		scene(c)
		c.safe()
	})
}

func TestARolloutAndARollbackKeepTheRevisions(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(3))
		c.want("after the creation", "web-0 web:2 not ready")
		c.settle()
		c.want("at rest", "web-0 web:2, web-1 web:2, web-2 web:2")
		first := c.set().Status
		if first.CurrentRevision != first.UpdateRevision || first.CurrentReplicas != 3 || first.UpdatedReplicas != 3 || first.AvailableReplicas != 3 ||
			first.CollisionCount == nil || *first.CollisionCount != 0 {
			t.Errorf("the status is %+v", first)
		}

		c.change(image("web:3"))
		c.want("after the change", "web-0 web:2, web-1 web:2, web-2 web:2 leaves")
		if s := c.set().Status; s.CurrentRevision != first.CurrentRevision || s.UpdateRevision == first.CurrentRevision || s.CurrentReplicas != 2 || s.UpdatedReplicas != 0 || s.Replicas != 3 {
			t.Errorf("the status is %+v", s)
		}
		c.kubelet()
		c.want("then", "web-0 web:2, web-1 web:2, web-2 web:3 not ready")
		c.settle()
		c.want("at rest", "web-0 web:3, web-1 web:3, web-2 web:3")

		c.change(image("web:2"))
		c.settle()
		c.want("after the rollback", "web-0 web:2, web-1 web:2, web-2 web:2")
		if s := c.set().Status; s.UpdateRevision != first.UpdateRevision || s.CurrentRevision != first.UpdateRevision {
			t.Errorf("the status after the rollback is %+v, want the revision %s", s, first.UpdateRevision)
		}
		if n := len(c.revisions.Keys()); n != 2 {
			t.Errorf("there are %d revisions, want 2", n)
		}
	})
}

func TestTheHistoryKeepsItsLimitAndWhatPodsUse(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(2, func(set *appsv1.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32(1)) }))
		c.settle()
		c.change(partition(1)) // web-0 stays
		for i := range 4 {
			c.change(image(fmt.Sprintf("web:%d", 10+i)))
			c.settle()
		}
		c.want("at rest", "web-0 web:2, web-1 web:13")
		if n := len(c.revisions.Keys()); n != 3 {
			t.Errorf("there are %d revisions: want the two that Pods use and one", n)
		}
	})
}

// kubernetes/kubernetes#67250.
func TestARollbackReplacesThePodThatWasNeverReady(t *testing.T) {
	for name, policy := range map[string]func(*appsv1.StatefulSet){"OrderedReady": func(*appsv1.StatefulSet) {}, "Parallel": parallel} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(c *cluster) {
				c.create(web(3, policy))
				c.settle()
				c.change(image("bad:1"))
				c.settle()
				c.want("with a bad image", "web-0 web:2, web-1 web:2, web-2 bad:1 not ready")
				c.change(image("web:2"))
				c.settle()
				c.want("after the rollback", "web-0 web:2, web-1 web:2, web-2 web:2")
				if notes := c.notes(replacingNeverReady); (len(notes) == 1) != (name == "OrderedReady") {
					t.Errorf("the Events say %q", notes)
				}
			})
		})
	}
}

// The Event that a rollout replaces a Pod that was never ready is false if the Pod becomes ready
// before its delete arrives.
func TestAPodThatBecomesReadyBeforeItsDeleteHasNoEventThatItNeverWas(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(3))
		c.settle()
		c.change(image("bad:1"))
		c.settle()
		c.want("with a bad image", "web-0 web:2, web-1 web:2, web-2 bad:1 not ready")
		var once sync.Once
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "delete" {
				return nil
			}
			once.Do(func() {
				if err := fakeapi.Change(c.pods, q.Key, readySince(time.Now())); err != nil {
					t.Error(err)
				}
			})
			return nil
		})
		c.change(image("web:2"))
		c.settle()
		c.want("after the rollback", "web-0 web:2, web-1 web:2, web-2 web:2")
		if notes := c.notes(replacingNeverReady); len(notes) != 0 {
			t.Errorf("the Events say %q of a Pod that was ready", notes)
		}
	})
}

func TestAFirstTemplateThatIsBadCanBeMended(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(2, image("bad:1")))
		c.settle()
		c.change(image("web:2"))
		c.settle()
		c.want("at rest", "web-0 web:2, web-1 web:2")
	})
}

// The observed generation says that the spec has been acted on.
func TestAStrategyThatIsRefusedLeavesTheStatusAsItIs(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(1))
		c.settle()
		before := c.set()
		c.change(recreate)
		c.wantNotes("UnknownStrategy", "statefulset shop/web uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled")
		if now := c.set(); now.Generation != before.Generation+1 || !equality.Semantic.DeepEqual(now.Status, before.Status) {
			t.Errorf("of the generation %d the status is %+v, and was %+v", now.Generation, now.Status, before.Status)
		}
		c.change(func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy = web(1).Spec.UpdateStrategy })
		c.settle()
		if now := c.set(); now.Status.ObservedGeneration != now.Generation {
			t.Errorf("with a strategy that it has, the status of the generation %d is %+v", now.Generation, now.Status)
		}
	})
}

func TestAnswersThatAreLostAndRefusedAreOvercome(t *testing.T) {
	for _, verb := range []string{"create", "delete", "update", "patch"} {
		for what, fault := range map[string]func(*fakeapi.Server){
			"lost": func(s *fakeapi.Server) { s.LoseNext(2, verb) },
			"an error": func(s *fakeapi.Server) {
				s.RefuseNext(2, verb, refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError))
			},
			"no server": func(s *fakeapi.Server) { s.RefuseNext(2, verb, fakeapi.Unavailable(1)) },
		} {
			t.Run(verb+", "+what, func(t *testing.T) {
				bubble(t, func(c *cluster) {
					c.create(web(2, withClaims(remove, remove)))
					c.settle()
					c.change(func(set *appsv1.StatefulSet) { image("web:3")(set); replicas(3)(set) })
					fault(c.Server)
					for range 4 {
						time.Sleep(5 * time.Minute)
						c.settle()
					}
					c.want("at rest", "web-0 web:3, web-1 web:3, web-2 web:3")
					if got := c.claims.Keys(); !slices.Equal(got, []string{"shop/data-web-0", "shop/data-web-1", "shop/data-web-2"}) {
						t.Errorf("the claims are %q", got)
					}
				})
			})
		}
	}
}

func refusal(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "refused by the test"}
}

func TestAQuotaDelaysThisStatefulSetAloneAndIsNamed(t *testing.T) {
	bubble(t, func(c *cluster) {
		var full atomic.Bool
		full.Store(true)
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" && full.Load() {
				s := refusal(http.StatusForbidden, metav1.StatusReasonForbidden)
				s.Message = `pods "web-0" is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0`
				return s
			}
			return nil
		})
		c.create(web(1))
		if got := c.process.Reasons("shop/web"); len(got) != 1 || !strings.Contains(got[0], "the ResourceQuota few leaves no room") {
			t.Errorf("the reasons are %q", got)
		}
		if notes := c.notes(failedCreate); len(notes) != 1 || !strings.HasPrefix(notes[0], "Create Pod web-0 in StatefulSet web failed error: ") {
			t.Errorf("the Events say %q", notes)
		}
		if n := len(c.pods.Calls()); n > 20 {
			t.Errorf("%d requests in a minute", n)
		}
		full.Store(false)
		time.Sleep(20 * time.Minute)
		c.settle()
		c.want("with room", "web-0 web:2")
	})
}

func TestANamespaceThatTerminatesIsNoFailure(t *testing.T) {
	bubble(t, func(c *cluster) {
		gone := func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "create" {
				return nil
			}
			s := refusal(http.StatusForbidden, metav1.StatusReasonForbidden)
			s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
			return s
		}
		c.pods.Before(gone)
		c.claims.Before(gone)
		c.create(web(1, withClaims(retain, retain)))
		time.Sleep(time.Hour)
		synctest.Wait()
		if notes := c.notes(failedCreate); len(notes) != 0 {
			t.Errorf("the Events say %q", notes)
		}
		if n := len(c.claims.Calls()); n > 4 { // one for each change of the StatefulSet and its revision
			t.Errorf("%d requests in an hour", n)
		}
	})
}

func TestALaggingCacheCreatesNoSecondPod(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.LagWatches(func() time.Duration { return 3 * time.Second })
		c.create(web(3, parallel))
		time.Sleep(time.Minute)
		c.settle()
		creates := 0
		for _, q := range c.pods.Requests() {
			if q.Verb == "create" {
				creates++
			}
		}
		if creates != 3 {
			t.Errorf("%d requests to create a Pod, want 3", creates)
		}
	})
}

func TestAPodOfAnotherOwnerHoldsUpItsOrdinalUntilItGoes(t *testing.T) {
	bubble(t, func(c *cluster) {
		other := pod(web(1), 0, "")
		other.OwnerReferences[0].UID, other.UID = "earlier", ""
		if err := c.pods.Add(other); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.create(web(1))
		time.Sleep(time.Hour)
		synctest.Wait()
		if calls := c.pods.Calls(); len(calls) != 0 {
			t.Errorf("requests meanwhile: %q", calls)
		}
		if got := c.process.Reasons("shop/web"); len(got) != 1 || !strings.HasPrefix(got[0], codeNameTaken) {
			t.Errorf("the reasons are %q", got)
		}
		if notes := c.notes(failedCreate); len(notes) != 1 {
			t.Errorf("the Events say %q", notes)
		}
		c.pods.Remove(object.KeyOf(other))
		c.settle()
		c.want("when it is gone", "web-0 web:2")
	})
}

func TestPodsAreAdoptedAndReleasedByLabelsAndNames(t *testing.T) {
	bubble(t, func(c *cluster) {
		orphan := func(name string, labels map[string]string) {
			p := pod(web(3), 0, "")
			p.Name, p.UID, p.OwnerReferences, p.Labels = name, "", nil, labels
			if err := c.pods.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		app := map[string]string{"app": "web"}
		orphan("web-1", app)
		orphan("web-01", app)
		orphan("web-x", app)
		orphan("other-0", app)
		orphan("web-2", map[string]string{"app": "other"})
		c.create(web(2))
		owned := func() (names []string) {
			for _, p := range c.all() {
				if metav1.GetControllerOf(p) != nil {
					names = append(names, p.Name)
				}
			}
			return names
		}
		if got := owned(); !slices.Equal(got, []string{"web-0", "web-1"}) {
			t.Errorf("its Pods are %q", got)
		}
		c.alter("web-1", func(p *corev1.Pod) { p.Labels["app"] = "other" })
		if got := owned(); !slices.Equal(got, []string{"web-0"}) {
			t.Errorf("its Pods are %q after the label of web-1 changed", got)
		}
	})
}

func TestAClaimThatGoesIsCreatedAgainForAPendingPod(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(1, withClaims(retain, remove)))
		key := object.Key{Namespace: "shop", Name: "data-web-0"}
		claim, err := fakeapi.Read[*corev1.PersistentVolumeClaim](c.claims, key)
		if err != nil {
			t.Fatal(err)
		}
		if !metav1.IsControlledBy(claim, c.set()) || claim.Labels["app"] != "web" || claim.Labels["tier"] != "db" {
			t.Errorf("the claim is %v", claim.ObjectMeta)
		}
		c.claims.Remove(key)
		synctest.Wait()
		if now := c.claims.UID(key); now == "" || now == claim.UID {
			t.Errorf("the claim has the UID %q", now)
		}
		if notes := c.notes(successfulCreate); !slices.Contains(notes, "Create Claim data-web-0 Pod web-0 in StatefulSet web success") {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestASmallerSizeHandsClaimsToTheirPods(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(2, withClaims(remove, remove)))
		c.settle()
		last := c.all()[1]
		c.change(replicas(1))
		claim, err := fakeapi.Read[*corev1.PersistentVolumeClaim](c.claims, object.Key{Namespace: "shop", Name: "data-web-1"})
		if err != nil {
			t.Fatal(err)
		}
		if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].UID != last.UID {
			t.Errorf("the owners are %v", claim.OwnerReferences)
		}
		c.settle()
		c.change(replicas(2)) // the garbage collector has not deleted the claim yet
		c.want("while the claim of the earlier Pod exists", "web-0 web:2")
		c.claims.Remove(object.KeyOf(claim))
		c.settle()
		c.want("at rest", "web-0 web:2, web-1 web:2")
	})
}

func TestAStatefulSetThatIsBeingDeletedKeepsItsPods(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(2))
		c.settle()
		c.change(func(set *appsv1.StatefulSet) { set.Finalizers = []string{"foregroundDeletion"} })
		if err := client.For[*appsv1.StatefulSet](c.Client).Delete(c.t.Context(), object.Key{Namespace: "shop", Name: "web"}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		synctest.Wait() // the informer of StatefulSets has the deletion before that of Pods has the other one
		c.pods.Remove(object.Key{Namespace: "shop", Name: "web-1"})
		c.settle()
		c.want("afterwards", "web-0 web:2")
		if s := c.set().Status; s.Replicas != 1 || s.ReadyReplicas != 1 {
			t.Errorf("the status is %+v", s)
		}
	})
}

func TestAPodBecomesAvailableWithTime(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(2, minReady(60)))
		c.settle()
		c.want("before its time", "web-0 web:2")
		time.Sleep(61 * time.Second)
		c.settle()
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if s := c.set().Status; s.AvailableReplicas != 2 {
			t.Errorf("the status is %+v", s)
		}
	})
}

// TestRandomHistoriesKeepTheRules changes a StatefulSet, its Pods, the server and the controller in
// random order. Each write is checked (supervise), and the end is always the same.
func TestRandomHistoriesKeepTheRules(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			var changes []func(*appsv1.StatefulSet)
			if r.IntN(2) == 0 {
				changes = append(changes, parallel)
			}
			if r.IntN(3) == 0 {
				changes = append(changes, withClaims(remove, retain))
			}
			changes = append(changes, maxUnavailable(fmt.Sprint(1+r.IntN(2))))
			bubble(t, func(c *cluster) {
				c.create(web(int32(r.IntN(5)), changes...))
				for range 60 {
					c.somethingHappens(r)
				}
				c.change(func(set *appsv1.StatefulSet) { image("web:9")(set); replicas(3)(set); partition(0)(set) })
				for range 4 {
					c.settle()
					c.healPods()
					c.collect()
					time.Sleep(20 * time.Minute)
				}
				c.settle()
				c.want("in the end", "web-0 web:9, web-1 web:9, web-2 web:9")
				if s := c.set().Status; s.CurrentRevision != s.UpdateRevision || s.AvailableReplicas != 3 || s.Replicas != 3 || s.UpdatedReplicas != 3 {
					t.Errorf("the status is %+v", s)
				}
			})
		})
	}
}

// somethingHappens lets a user, a node, the server or the controller do something.
func (c *cluster) somethingHappens(r *rand.Rand) {
	c.t.Helper()
	pods := c.all()
	some := func(f func(*corev1.Pod)) {
		if len(pods) > 0 {
			f(pods[r.IntN(len(pods))])
		}
	}
	switch r.IntN(14) {
	case 0:
		c.change(replicas(int32(r.IntN(6))))
	case 1:
		c.change(image([]string{"web:1", "web:2", "web:3", "bad:1"}[r.IntN(4)]))
	case 2:
		c.change(partition(int32(r.IntN(3))))
	case 3:
		some(func(p *corev1.Pod) { c.pods.Remove(object.KeyOf(p)) })
	case 4:
		some(func(p *corev1.Pod) { c.alter(p.Name, leaving) })
	case 5:
		some(func(p *corev1.Pod) { c.alter(p.Name, failed) })
	case 6:
		some(func(p *corev1.Pod) {
			if podstate.Ready(p) {
				c.alter(p.Name, unready)
			}
		})
	case 7:
		c.start()
	case 8:
		c.LoseNext(1, []string{"create", "delete", "update"}[r.IntN(3)])
	case 9:
		c.RefuseNext(1, []string{"create", "delete", "update"}[r.IntN(3)], refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	default:
		c.kubelet()
	}
	time.Sleep(time.Duration(r.IntN(60)) * time.Second)
	synctest.Wait()
}

// healPods has Pods that are not ready become ready, unless their image is bad.
func (c *cluster) healPods() {
	c.t.Helper()
	for _, p := range c.all() {
		if !podstate.Ready(p) && !podstate.Ended(p) && !strings.HasPrefix(p.Spec.Containers[0].Image, "bad") {
			c.alter(p.Name, readySince(time.Now()))
		}
	}
}

// collect removes the claims whose Pods are gone, as the garbage collector does.
func (c *cluster) collect() {
	c.t.Helper()
	claims, err := fakeapi.Objects[*corev1.PersistentVolumeClaim](c.claims)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, claim := range claims {
		for _, ref := range claim.OwnerReferences {
			if ref.Kind == "Pod" && c.pods.UID(object.Key{Namespace: "shop", Name: ref.Name}) != ref.UID {
				c.claims.Remove(object.KeyOf(claim))
			}
		}
	}
	synctest.Wait()
}

// A rollout replaces a Pod that is not available whatever the bound is. It must not replace one that
// has become available meanwhile.
func TestARolloutKeepsAPodThatBecomesAvailableBeforeItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.create(web(3, parallel, image("bad:1")))
		c.settle()
		c.alter("web-0", readySince(time.Now()))
		c.pods.Faults.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && q.Key.Name == "web-1" {
				if err := fakeapi.Change(c.pods, object.Key{Namespace: "shop", Name: "web-1"}, readySince(time.Now())); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		c.change(image("web:2"))
		c.want("with web-1 back and web-2 missing", "web-0 bad:1, web-1 bad:1, web-2 bad:1 leaves")
		c.pods.Faults.Before(nil)
		c.settle()
		c.want("after the rollout", "web-0 web:2, web-1 web:2, web-2 web:2")
	})
}

// The change that stops the delete of a Pod may be one that starts no run: an address, say.
func TestARolloutReplacesABrokenPodThoughItChangesBeforeItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.create(web(1, parallel, image("bad:1")))
		c.settle()
		const changes = 5 // the last of which come when nothing else starts a run
		changed := 0
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "delete" || changed == changes {
				return nil
			}
			changed++
			if err := fakeapi.Change(c.pods, q.Key, func(p *corev1.Pod) { p.Status.PodIP = fmt.Sprint("10.0.0.", changed) }); err != nil {
				t.Error(err)
			}
			return nil
		})
		c.change(image("web:2"))
		time.Sleep(time.Minute)
		synctest.Wait()
		c.want("after the changes", "web-0 bad:1 leaves")
	})
}
