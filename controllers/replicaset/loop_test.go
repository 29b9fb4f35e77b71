// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// web is the ReplicaSet of most tests.
var web = object.Key{Namespace: "shop", Name: "web"}

func webSet(replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, UID: "web-uid"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      map[string]string{"app": "web", "tier": "front"},
					Annotations: map[string]string{"note": "template"},
				},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "web", Image: "nginx"}},
					TerminationGracePeriodSeconds: new(int64(30)),
				},
			},
		},
	}
}

// webPod returns a Pod that webSet manages.
func webPod(name string) *corev1.Pod {
	pod := loosePod(name)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(webSet(0), replicaSets.GroupVersionKind())}
	return pod
}

// loosePod returns a Pod that webSet's selector matches and nobody manages.
func loosePod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: name, Labels: map[string]string{"app": "web", "tier": "front"}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func podKey(name string) object.Key { return object.Key{Namespace: web.Namespace, Name: name} }

// start runs the controller in a process of its own. stop ends it as a signal
// would; kill ends the process without a word.
func start(t *testing.T, s *server, o Options) (stop, kill func()) {
	t.Helper()
	_, stop, kill = startController(t, s, o)
	return stop, kill
}

// startController is start for tests that look at the controller.
func startController(t *testing.T, s *server, o Options) (c *controller.Controller, stop, kill func()) {
	t.Helper()
	p := newProcess(t, s, nil)
	c, stop = startProcess(t, p, o)
	return c, stop, func() {
		p.kill()
		stop()
	}
}

// startProcess runs the controller in a process.
func startProcess(t *testing.T, p *process, o Options) (c *controller.Controller, stop func()) {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "http://server", Transport: p},
		manager.Log(slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))))
	if err != nil {
		t.Fatal(err)
	}
	c, err = newController(mgr, o, newAgeRatio(&controllers.Metrics{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Run(ctx); err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return c, stop
}

// settle lets simulated time pass until all that was under way has come to rest.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// run is a test of the whole loop in simulated time.
func run(t *testing.T, prepare func(*server), check func(*testing.T, *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		prepare(s)
		stop, _ := start(t, s, Defaults())
		settle()
		check(t, s)
		stop()
	})
}

func TestMissingPodsAreCreatedFromTheTemplate(t *testing.T) {
	run(t, func(s *server) { s.addSet(webSet(3)) }, func(t *testing.T, s *server) {
		pods := s.allPods()
		if len(pods) != 3 {
			t.Fatalf("there are %d Pods, want 3", len(pods))
		}
		pod := pods[0]
		if pod.GenerateName != "web-" || !strings.HasPrefix(pod.Name, "web-") || len(pod.Name) != len("web-")+5 {
			t.Errorf("the Pod is called %q, generated from %q", pod.Name, pod.GenerateName)
		}
		want := webSet(0).Spec.Template
		if !maps.Equal(pod.Labels, want.Labels) || !maps.Equal(pod.Annotations, want.Annotations) || pod.Spec.Containers[0].Image != "nginx" {
			t.Errorf("the Pod is not as its template: %v", pod)
		}
		if len(pod.OwnerReferences) != 1 {
			t.Fatalf("the Pod has owners %v", pod.OwnerReferences)
		}
		if ref := pod.OwnerReferences[0]; ref.APIVersion != "apps/v1" || ref.Kind != "ReplicaSet" || ref.Name != "web" || ref.UID != "web-uid" ||
			!*ref.Controller || !*ref.BlockOwnerDeletion {
			t.Errorf("the Pod's owner is %v", ref)
		}
	})
}

func TestEventsTellWhatWasDoneInUpstreamsWords(t *testing.T) {
	run(t, func(s *server) {
		s.addSet(webSet(1))
		surplus := webSet(0)
		surplus.Name, surplus.UID = "api", "api-uid"
		surplus.Spec.Selector.MatchLabels = map[string]string{"app": "api"}
		s.addSet(surplus)
		pod := webPod("api-1")
		pod.Labels = map[string]string{"app": "api"}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(surplus, replicaSets.GroupVersionKind())}
		s.addPod(pod)
	}, func(t *testing.T, s *server) {
		if want := []string{"Created pod: " + s.allPods()[0].Name}; !slices.Equal(s.told("SuccessfulCreate"), want) {
			t.Errorf("SuccessfulCreate says %q, want %q", s.told("SuccessfulCreate"), want)
		}
		if want := []string{"Deleted pod: api-1"}; !slices.Equal(s.told("SuccessfulDelete"), want) {
			t.Errorf("SuccessfulDelete says %q, want %q", s.told("SuccessfulDelete"), want)
		}
	})
}

func TestABurstIsAtMost500(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.LagWatches(func() time.Duration { return time.Second }) // holds the second run back
		s.addSet(webSet(700))
		start(t, s, Defaults())
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if n := len(s.allPods()); n != 500 {
			t.Errorf("the first run made %d Pods, want 500", n)
		}
		settle()
		if n := len(s.allPods()); n != 700 {
			t.Errorf("there are %d Pods, want 700", n)
		}
	})
}

func forbidden(cause metav1.CauseType) *metav1.Status {
	status := refusal(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "web-x" is forbidden: exceeded quota`)
	if cause != "" {
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}}
	}
	return status
}

// A quota may forbid Pods for long. Those that there are become available in time.
func TestAPodBecomesAvailableInTimeWhileOthersCannotBeCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		refuse(s.pods, func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" {
				return forbidden("")
			}
			return nil
		})
		set := webSet(2)
		set.Spec.MinReadySeconds = 30
		s.addSet(set)
		s.addPod(webPod("a"))
		start(t, s, Defaults())
		time.Sleep(20 * time.Minute) // the back-off is long by now
		s.changePod(podKey("a"), func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		})
		time.Sleep(32 * time.Second)
		synctest.Wait()
		if n := s.set(web).Status.AvailableReplicas; n != 1 {
			t.Errorf("%d Pods are available 32 s after one became ready, want 1", n)
		}
	})
}

func TestCreatingStartsSlowlyAndStopsWithTheFirstBatchThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		refuse(s.pods, func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" && len(s.pods.Keys()) >= 3 {
				return forbidden("")
			}
			return nil
		})
		s.addSet(webSet(100))
		start(t, s, Defaults())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		// 1, then 2, then a batch of 4 that is refused, then the status of the run.
		n := 0
		for _, q := range s.Requests() {
			if q.Subresource == "status" {
				break
			}
			if q.Resource == s.pods.Resource && q.Verb == "create" {
				n++
			}
		}
		if n != 7 {
			t.Errorf("the first run sent %d creates, want 7", n)
		}
		condition := s.set(web).Status.Conditions
		if len(condition) != 1 || condition[0].Type != appsv1.ReplicaSetReplicaFailure || condition[0].Status != corev1.ConditionTrue ||
			condition[0].Reason != "FailedCreate" || condition[0].Message != `pods "web-x" is forbidden: exceeded quota` {
			t.Errorf("the conditions are %v", condition)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if notes := s.told("FailedCreate"); len(notes) == 0 || notes[0] != `Error creating: pods "web-x" is forbidden: exceeded quota` {
			t.Errorf("FailedCreate says %q", notes)
		}
	})
}

func TestTheFailureConditionGoesWhenPodsCanBeCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		began := time.Now()
		refuse(s.pods, func(*fakeapi.Request) *metav1.Status {
			if time.Since(began) < time.Second {
				return forbidden("")
			}
			return nil
		})
		s.addSet(webSet(5))
		start(t, s, Defaults())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if len(s.set(web).Status.Conditions) != 1 {
			t.Fatalf("the conditions are %v, want ReplicaFailure", s.set(web).Status.Conditions)
		}
		settle()
		if status := s.set(web).Status; len(status.Conditions) != 0 || status.Replicas != 5 {
			t.Errorf("the status is %v, want 5 replicas and no condition", status)
		}
	})
}

func TestANamespaceThatTerminatesIsLeftAlone(t *testing.T) {
	run(t, func(s *server) {
		refuse(s.pods, func(*fakeapi.Request) *metav1.Status { return forbidden(corev1.NamespaceTerminatingCause) })
		s.addSet(webSet(100))
	}, func(t *testing.T, s *server) {
		// Once more after the status that the first run wrote.
		if n := len(s.asked(s.pods, "create")); n > 2 {
			t.Errorf("%d creates were sent, want no retries", n)
		}
		if conditions := s.set(web).Status.Conditions; len(conditions) != 0 || len(s.told("FailedCreate")) != 0 {
			t.Errorf("conditions %v and events %q, want none", conditions, s.told("FailedCreate"))
		}
	})
}

func TestPodsThatEndedOrAreBeingDeletedAreReplaced(t *testing.T) {
	run(t, func(s *server) {
		s.addSet(webSet(2))
		failed, succeeded, going := webPod("failed"), webPod("succeeded"), webPod("going")
		failed.Status.Phase, succeeded.Status.Phase = corev1.PodFailed, corev1.PodSucceeded
		going.DeletionTimestamp = new(metav1.Now())
		s.addPod(failed)
		s.addPod(succeeded)
		s.addPod(going)
	}, func(t *testing.T, s *server) {
		if n := len(s.allPods()); n != 5 {
			t.Errorf("there are %d Pods, want two more than the three that do not count", n)
		}
		status := s.set(web).Status
		if status.Replicas != 2 || status.TerminatingReplicas == nil || *status.TerminatingReplicas != 1 {
			t.Errorf("the status is %v, want 2 replicas and 1 that terminates", status)
		}
		if len(s.asked(s.pods, "delete")) != 0 {
			t.Errorf("Pods that do not count were deleted")
		}
	})
}

func TestSurplusPodsAreDeletedByUID(t *testing.T) {
	// The server fails the test for a delete that does not name a UID.
	run(t, func(s *server) {
		s.addSet(webSet(1))
		for _, name := range []string{"a", "b", "c"} {
			pod := webPod(name)
			pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "node-1", new(int64(30))
			s.addPod(pod)
		}
		pending := webPod("pending")
		s.addPod(pending)
	}, func(t *testing.T, s *server) {
		left := 0
		for _, pod := range s.allPods() {
			if isActive(pod) {
				left++
			}
			if pod.Name == "pending" {
				t.Errorf("the Pod that was not scheduled stayed")
			}
		}
		if status := s.set(web).Status; left != 1 || status.Replicas != 1 || *status.TerminatingReplicas != 2 {
			t.Errorf("%d active Pods and status %v, want 1 and 2 that terminate", left, status)
		}
		if n := len(s.statusWrites()); n != 1 {
			t.Errorf("the status was written %d times for one run, want once", n)
		}
	})
}

func TestAllReplicasCanGo(t *testing.T) {
	run(t, func(s *server) {
		s.addSet(webSet(0))
		for i := range 200 {
			s.addPod(webPod(string(rune('a'+i%26)) + strings.Repeat("x", i)))
		}
	}, func(t *testing.T, s *server) {
		if n := len(s.allPods()); n != 0 {
			t.Errorf("%d Pods stayed", n)
		}
		if n := len(s.asked(s.pods, "delete")); n != 200 {
			t.Errorf("%d deletes were sent, want one a Pod", n)
		}
	})
}

func TestAPodThatIsGoneAlreadyIsNoFailure(t *testing.T) {
	run(t, func(s *server) {
		gone := refusal(http.StatusNotFound, metav1.StatusReasonNotFound, `pods "a" not found`)
		gone.Details = &metav1.StatusDetails{Name: "a", Kind: "pods"}
		s.pods.RefuseNext(1000, "delete", gone)
		s.addSet(webSet(0))
		s.addPod(webPod("a"))
	}, func(t *testing.T, s *server) {
		if n := len(s.told("FailedDelete")); n != 0 || len(s.set(web).Status.Conditions) != 0 {
			t.Errorf("%d FailedDelete events, conditions %v, want none", n, s.set(web).Status.Conditions)
		}
	})
}

func TestAFailedDeleteIsReportedAndRetried(t *testing.T) {
	run(t, func(s *server) {
		s.pods.RefuseNext(3, "delete", refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "a webhook says no"))
		s.addSet(webSet(0))
		s.addPod(webPod("a"))
	}, func(t *testing.T, s *server) {
		if notes := s.told("FailedDelete"); len(notes) == 0 || notes[0] != "Error deleting: a webhook says no" {
			t.Errorf("FailedDelete says %q", notes)
		}
		if status := s.set(web).Status; len(s.allPods()) != 0 || len(status.Conditions) != 0 {
			t.Errorf("%d Pods and conditions %v are left, want none", len(s.allPods()), status.Conditions)
		}
	})
}

func TestALoosePodThatMatchesIsAdoptedAfterALookAtTheServer(t *testing.T) {
	run(t, func(s *server) {
		s.addSet(webSet(2))
		s.addPod(loosePod("loose"))
		other := loosePod("other")
		other.Labels = map[string]string{"app": "db"}
		s.addPod(other)
		failed := loosePod("failed")
		failed.Status.Phase = corev1.PodFailed
		s.addPod(failed)
	}, func(t *testing.T, s *server) {
		if n := len(s.asked(s.sets, "get")); n != 1 {
			t.Errorf("the server was asked %d times if the ReplicaSet is there, want once", n)
		}
		for _, pod := range s.allPods() {
			owned := metav1.GetControllerOf(pod) != nil
			if want := pod.Name == "loose" || pod.GenerateName != ""; owned != want {
				t.Errorf("Pod %s is managed: %t, want %t", pod.Name, owned, want)
			}
		}
		if n := len(s.allPods()); n != 4 {
			t.Errorf("there are %d Pods, want one made beside the three", n)
		}
	})
}

func TestALoosePodThatAppearsIsAdopted(t *testing.T) {
	for name, selector := range map[string]*metav1.LabelSelector{
		"by labels":      {MatchLabels: map[string]string{"app": "web"}},
		"by expressions": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "www"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(s *server) {
				set := webSet(1)
				set.Spec.Selector = selector
				s.addSet(set)
				other := loosePod("other")
				other.Labels = map[string]string{"app": "db"}
				s.addPod(other)
				made := webPod("made")
				made.CreationTimestamp = metav1.Now()
				s.addPod(made)
				time.AfterFunc(10*time.Second, func() { s.addPod(loosePod("loose")) })
				time.AfterFunc(20*time.Second, func() {
					s.changePod(podKey("other"), func(pod *corev1.Pod) { pod.Labels["app"] = "web" })
				})
			}, func(t *testing.T, s *server) {
				if n := len(s.asked(s.pods, "patch")); n != 2 {
					t.Errorf("%d Pods were adopted, want both", n)
				}
				if n := len(s.allPods()); n != 1 {
					t.Errorf("there are %d Pods, want the surplus ones deleted", n)
				}
			})
		})
	}
}

func TestNothingIsAdoptedForAReplicaSetThatIsGone(t *testing.T) {
	for name, change := range map[string]func(*appsv1.ReplicaSet){
		"it is being deleted":      func(set *appsv1.ReplicaSet) { set.DeletionTimestamp = new(metav1.Now()) },
		"another one has its name": func(set *appsv1.ReplicaSet) { set.UID = "another-uid" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.addSet(webSet(1))
				s.addPod(webPod("a"))
				start(t, s, Defaults())
				settle()
				// Watches do not show the change, but they show the Pod.
				s.LagWatches(func() time.Duration { return 10 * time.Minute })
				s.changeSet(web, change)
				s.LagWatches(nil)
				s.addPod(loosePod("loose"))
				settle()
				if n := len(s.asked(s.sets, "get")); n != 1 {
					t.Errorf("the server was asked %d times, want once: there is nothing to try again", n)
				}
				if n := len(s.asked(s.pods, "patch", "create", "delete")); n != 0 {
					t.Errorf("%d Pods were adopted, made or deleted, want none", n)
				}
			})
		})
	}
}

func TestAPodWhoseLabelsMatchNoLongerIsReleasedAndReplaced(t *testing.T) {
	run(t, func(s *server) {
		s.addSet(webSet(1))
		s.addPod(webPod("a"))
		time.AfterFunc(time.Second, func() {
			s.changePod(podKey("a"), func(pod *corev1.Pod) { pod.Labels["app"] = "quarantine" })
		})
	}, func(t *testing.T, s *server) {
		pods := s.allPods()
		if len(pods) != 2 || pods[0].Name != "a" || len(pods[0].OwnerReferences) != 0 {
			t.Errorf("want Pod a without owner and another one, have %v", pods)
		}
	})
}

func TestAReplicaSetThatIsBeingDeletedIsNotScaledButItsStatusIsKept(t *testing.T) {
	run(t, func(s *server) {
		set := webSet(3)
		set.DeletionTimestamp, set.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
		s.addSet(set)
		s.addPod(webPod("a"))
		s.addPod(loosePod("loose"))
		off := webPod("off")
		off.Labels = map[string]string{"app": "quarantine"}
		s.addPod(off)
	}, func(t *testing.T, s *server) {
		if writes := s.asked(s.pods, "create", "delete", "patch"); len(writes) != 0 {
			t.Errorf("Pods were written: %v", writes)
		}
		if status := s.set(web).Status; status.Replicas != 1 || status.ObservedGeneration != 1 {
			t.Errorf("the status is %v, want 1 replica of generation 1", status)
		}
	})
}

func TestPodsOfOtherNamespacesAreNobodysBusiness(t *testing.T) {
	run(t, func(s *server) {
		s.addSet(webSet(0))
		foreign := webPod("foreign")
		foreign.Namespace = "elsewhere"
		s.addPod(foreign)
	}, func(t *testing.T, s *server) {
		if n := len(s.allPods()); n != 1 || s.set(web).Status.Replicas != 0 {
			t.Errorf("%d Pods and status %v; the Pod that claims an owner in another namespace was taken for its", n, s.set(web).Status)
		}
	})
}

func TestAnInvalidSelectorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		set := webSet(3)
		set.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Around"}}}
		s.addSet(set)
		c, stop, _ := startController(t, s, Defaults())
		settle()
		if writes := append(s.asked(s.pods, "create"), s.statusWrites()...); len(writes) != 0 {
			t.Errorf("something was written: %v", writes)
		}
		if n := c.Queue().Stats().Retries; n != 0 {
			t.Errorf("it was retried %d times", n)
		}
		stop()
	})
}

func TestAPodBecomesAvailableAfterMinReadySecondsWithoutAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		set := webSet(2)
		set.Spec.MinReadySeconds = 30
		s.addSet(set)
		for i, name := range []string{"a", "b"} {
			pod := webPod(name)
			since := metav1.NewTime(time.Now().Add(time.Duration(i) * -10 * time.Second))
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}}
			s.addPod(pod)
		}
		start(t, s, Defaults())
		for _, step := range []struct {
			at        time.Duration
			available int32
		}{{19 * time.Second, 0}, {21 * time.Second, 1}, {29 * time.Second, 1}, {31 * time.Second, 2}} {
			time.Sleep(step.at - time.Since(s.set(web).CreationTimestamp.Time))
			synctest.Wait()
			if status := s.set(web).Status; status.ReadyReplicas != 2 || status.AvailableReplicas != step.available {
				t.Errorf("after %v there are %d ready and %d available, want 2 and %d", step.at, status.ReadyReplicas, status.AvailableReplicas, step.available)
			}
		}
		if n := len(s.statusWrites()); n != 3 {
			t.Errorf("the status was written %d times, want 3", n)
		}
	})
}

func TestAPodThatWasUnreadyUnseenMustBeReadyForAsLongAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		set := webSet(1)
		set.Spec.MinReadySeconds = 30
		s.addSet(set)
		pod := webPod("a")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		s.addPod(pod)
		stop, _ := start(t, s, Defaults())
		settle()
		// It was unready for a moment: what is seen is ready before and after.
		s.changePod(podKey("a"), func(pod *corev1.Pod) { pod.Status.Conditions[0].LastTransitionTime = metav1.Now() })
		for _, want := range []int32{0, 1} {
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if got := s.set(web).Status.AvailableReplicas; got != want {
				t.Errorf("%d are available, want %d", got, want)
			}
		}
		stop()
	})
}

func TestAStatusThatHasNotChangedIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(2))
		stop, _ := start(t, s, Defaults())
		settle()
		if n := len(s.statusWrites()); n != 1 {
			t.Errorf("the status was written %d times for two Pods that were made, want once", n)
		}
		stop()
		start(t, s, Defaults()) // looks at everything again
		settle()
		if n := len(s.statusWrites()); n != 1 {
			t.Errorf("the status was written %d times, and nothing had changed", n)
		}
	})
}

func TestAStatusGoesOntoTheNewestReplicaSetAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(1))
		s.addPod(webPod("a"))
		start(t, s, Defaults())
		settle()
		s.LagWatches(func() time.Duration { return 5 * time.Second })
		s.changeSet(web, func(set *appsv1.ReplicaSet) { set.Annotations = map[string]string{"changed": "unseen"} })
		s.LagWatches(nil)
		s.changePod(podKey("a"), func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		})
		time.Sleep(time.Second)
		synctest.Wait()
		set := s.set(web)
		if set.Status.ReadyReplicas != 1 || set.Annotations["changed"] != "unseen" {
			t.Errorf("the status is %v with annotations %v, want 1 ready and the change kept", set.Status, set.Annotations)
		}
		if set.Status.ObservedGeneration != 1 {
			t.Errorf("observedGeneration is %d, want that of the spec the status is about, 1", set.Status.ObservedGeneration)
		}
		settle()
		if got := s.set(web).Status.ObservedGeneration; got != 2 {
			t.Errorf("observedGeneration is %d after the change was seen, want 2", got)
		}
	})
}

func TestTheStatusFollowsReadinessAndEndOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(1))
		s.addPod(webPod("a"))
		stop, _ := start(t, s, Defaults())
		settle()
		becomes := func(ready corev1.ConditionStatus) {
			s.changePod(podKey("a"), func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}}
			})
			settle()
		}
		becomes(corev1.ConditionTrue)
		if got := s.set(web).Status.ReadyReplicas; got != 1 {
			t.Errorf("%d are ready, want the Pod that became so", got)
		}
		becomes(corev1.ConditionFalse)
		if got := s.set(web).Status.ReadyReplicas; got != 0 {
			t.Errorf("%d are ready, want none any more", got)
		}
		s.changePod(podKey("a"), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
		settle()
		if n := len(s.allPods()); n != 2 {
			t.Errorf("there are %d Pods, want one in place of the one that failed", n)
		}
		s.changePod(object.KeyOf(s.allPods()[1]), func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) })
		settle()
		if n := len(s.allPods()); n != 3 {
			t.Errorf("there are %d Pods, want one in place of the one that is being deleted", n)
		}
		stop()
	})
}

func TestChangesThatDoNotMatterStartNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(1))
		s.addPod(webPod("a"))
		c, stop, _ := startController(t, s, Defaults())
		settle()
		before := c.Queue().Stats().Adds
		s.changePod(podKey("a"), func(pod *corev1.Pod) { pod.Spec.NodeName = "node-1" })
		s.changePod(podKey("a"), func(pod *corev1.Pod) { pod.Status.PodIP, pod.Annotations = "10.0.0.1", map[string]string{"a": "b"} })
		s.addPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: "other", Labels: map[string]string{"app": "db"}}})
		settle()
		if adds := c.Queue().Stats().Adds - before; adds != 0 {
			t.Errorf("%d runs were asked for, want none", adds)
		}
		stop()
	})
}
