// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// create creates a Deployment whose Pods become ready after a time, or "never".
func (c *cluster) create(name string, replicas int32, readyAfter string, change ...func(*appsv1.Deployment)) {
	c.t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"sim.setpoint.io/ready-after": readyAfter}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
			},
		},
	}
	for _, f := range change {
		f(d)
	}
	if _, err := client.For[*appsv1.Deployment](c.Client).Create(c.t.Context(), d); err != nil {
		c.t.Fatal(err)
	}
}

// hasCondition says what is missing for a Deployment to have a condition.
func (c *cluster) hasCondition(name string, typ appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason string) func() string {
	return func() string {
		d := c.deployment(name)
		for _, condition := range d.Status.Conditions {
			if condition.Type == typ && condition.Status == status && condition.Reason == reason {
				return ""
			}
		}
		return fmt.Sprintf("no condition %s=%s for %s: %+v", typ, status, reason, d.Status)
	}
}

// hasEvent says what is missing for an event to be recorded.
func (c *cluster) hasEvent(reason, note string) func() string {
	return func() string {
		events, _, err := client.For[*eventsv1.Event](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, e := range events {
			if e.Reason == reason && strings.Contains(e.Note, note) && e.ReportingController == "deployment-controller" {
				return ""
			}
			all = append(all, e.Reason+": "+e.Note)
		}
		return fmt.Sprintf("no event %s with %q among\n%s", reason, note, strings.Join(all, "\n"))
	}
}

func TestDeploymentComesAlive(t *testing.T) {
	c := start(t)
	c.kubectl("create", "deployment", "web", "--image", "nginx", "--replicas", "10")
	c.rolledOut("web")
	running := 0
	for _, pod := range read[corev1.PodList](c, "pods").Items {
		if pod.Status.Phase == corev1.PodRunning && ready(&pod) {
			running++
		}
	}
	if running != 10 {
		t.Errorf("%d Pods run, want 10", running)
	}
	d := c.deployment("web")
	s := d.Status
	if s.ObservedGeneration != d.Generation || s.Replicas != 10 || s.UpdatedReplicas != 10 || s.AvailableReplicas != 10 || s.UnavailableReplicas != 0 {
		t.Errorf("status = %+v", s)
	}
	if s.TerminatingReplicas == nil || *s.TerminatingReplicas != 0 {
		t.Errorf("terminatingReplicas = %v, want 0", s.TerminatingReplicas)
	}
	set := c.sets()[0]
	c.eventually(c.hasEvent("ScalingReplicaSet", "Scaled up replica set "+set.Name+" from 0 to 10"))
}

func TestKubectlScale(t *testing.T) {
	c := start(t)
	c.create("web", 3, "0s")
	c.rolledOut("web")
	for _, n := range []int{7, 2, 0, 4} {
		c.kubectl("scale", "deployment/web", "--replicas", fmt.Sprint(n))
		c.eventually(func() string {
			pods := slices.DeleteFunc(read[corev1.PodList](c, "pods").Items, func(p corev1.Pod) bool { return !alive(&p) })
			if s := c.deployment("web").Status; len(pods) != n || s.Replicas != int32(n) || s.AvailableReplicas != int32(n) {
				return fmt.Sprintf("%d Pods of %d, status %+v", len(pods), n, s)
			}
			return ""
		})
	}
	set := c.sets()[0]
	c.eventually(c.hasEvent("ScalingReplicaSet", "Scaled down replica set "+set.Name+" from 7 to 2"))
	if got := set.Annotations["deployment.kubernetes.io/desired-replicas"]; got != "4" {
		t.Errorf("desired-replicas = %q, want 4", got)
	}
}

func TestKubectlRollout(t *testing.T) {
	c := start(t)
	c.create("web", 4, "0s")
	image := func() string { return c.deployment("web").Spec.Template.Spec.Containers[0].Image }
	revision := func() string { return c.deployment("web").Annotations["deployment.kubernetes.io/revision"] }
	c.rolledOut("web")
	c.kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=the first")
	c.eventually(func() string { // the cause belongs to this revision once its set has it
		if set := c.sets()[0]; set.Annotations["kubernetes.io/change-cause"] != "the first" {
			return fmt.Sprintf("annotations of the set: %v", set.Annotations)
		}
		return ""
	})
	c.kubectl("set", "image", "deployment/web", "main=web:2")
	c.kubectl("annotate", "deployment/web", "--overwrite", "kubernetes.io/change-cause=the second")
	c.eventually(func() string { // an annotation is no part of what a rollout waits for
		for _, set := range c.sets() {
			if set.Annotations["kubernetes.io/change-cause"] == "the second" {
				return ""
			}
		}
		return "no set has the second cause"
	})
	c.rolledOut("web")
	if revision() != "2" {
		t.Errorf("revision %s after the second rollout", revision())
	}
	history := c.kubectl("rollout", "history", "deployment/web")
	for _, want := range []string{"1         the first", "2         the second"} {
		if !strings.Contains(history, want) {
			t.Errorf("history lacks %q:\n%s", want, history)
		}
	}
	if one := c.kubectl("rollout", "history", "deployment/web", "--revision", "1"); !strings.Contains(one, "web:1") {
		t.Errorf("history of revision 1:\n%s", one)
	}

	c.kubectl("rollout", "undo", "deployment/web")
	c.rolledOut("web")
	if image() != "web:1" || revision() != "3" {
		t.Errorf("image %s at revision %s after undo, want web:1 at 3", image(), revision())
	}
	c.kubectl("rollout", "undo", "deployment/web", "--to-revision", "2")
	c.rolledOut("web")
	if image() != "web:2" || revision() != "4" {
		t.Errorf("image %s at revision %s after undo to 2, want web:2 at 4", image(), revision())
	}
	if sets := c.sets(); len(sets) != 2 {
		t.Errorf("%d sets, want the two of the two templates", len(sets))
	}

	c.kubectl("rollout", "pause", "deployment/web")
	c.kubectl("set", "image", "deployment/web", "main=web:3")
	c.kubectl("scale", "deployment/web", "--replicas", "6")
	c.eventually(c.hasCondition("web", appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused"))
	c.eventually(func() string {
		if s := c.deployment("web").Status; s.Replicas != 6 || s.UpdatedReplicas != 0 {
			return fmt.Sprintf("paused and scaled: %+v", s)
		}
		return ""
	})
	if sets := c.sets(); len(sets) != 2 {
		t.Errorf("%d sets while paused, want no new one", len(sets))
	}
	c.kubectl("rollout", "resume", "deployment/web")
	c.rolledOut("web")
	if got := c.deployment("web").Status.UpdatedReplicas; got != 6 || len(c.sets()) != 3 {
		t.Errorf("%d updated Pods and %d sets after resume, want 6 and 3", got, len(c.sets()))
	}

	before := map[string]bool{}
	for _, pod := range read[corev1.PodList](c, "pods").Items {
		before[pod.Name] = true
	}
	c.kubectl("rollout", "restart", "deployment/web")
	c.rolledOut("web")
	for _, pod := range read[corev1.PodList](c, "pods").Items {
		if alive(&pod) && before[pod.Name] {
			t.Errorf("Pod %s outlived the restart", pod.Name)
		}
	}
}

func TestRolloutThatGetsNowhereIsReportedAndCanBeUndone(t *testing.T) {
	c := start(t)
	c.create("web", 4, "0s")
	c.rolledOut("web")
	c.kubectl("patch", "deployment", "web", "--type", "merge", "--patch",
		`{"spec":{"progressDeadlineSeconds":2,"template":{"metadata":{"annotations":{"sim.setpoint.io/ready-after":"never"}}}}}`)
	c.eventually(c.hasCondition("web", appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded"))
	if _, err := c.try("rollout", "status", "deployment/web"); err == nil || !strings.Contains(err.Error(), "exceeded its progress deadline") {
		t.Errorf("rollout status: %v", err)
	}
	c.kubectl("patch", "deployment", "web", "--type", "merge", "--patch", `{"spec":{"progressDeadlineSeconds":600}}`) // the way back may take longer
	c.kubectl("rollout", "undo", "deployment/web")
	c.rolledOut("web")
	c.eventually(c.hasCondition("web", appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable"))
}

func TestHistoryLimitIsKept(t *testing.T) {
	c := start(t)
	one := int32(1)
	c.create("web", 1, "0s", func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = &one })
	for i := range 4 {
		c.kubectl("set", "image", "deployment/web", fmt.Sprintf("main=web:%d", i+1))
		c.rolledOut("web")
	}
	c.eventually(func() string {
		if sets := c.sets(); len(sets) != 2 {
			return fmt.Sprintf("%d sets, want the current one and the one before", len(sets))
		}
		return ""
	})
	c.kubectl("rollout", "undo", "deployment/web")
	if image := c.deployment("web").Spec.Template.Spec.Containers[0].Image; image != "web:3" {
		t.Errorf("undo leads to %s", image)
	}
}

// Somebody may have scaled it up, or put it to another use, since it was looked at.
func TestAReplicaSetOfTheHistoryIsDeletedOnlyAsItWasSeen(t *testing.T) {
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	c.run(c.Config, replicaSets)
	var mu sync.Mutex
	var answers []int
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, c.namespace+"/replicasets/") {
				return next.RoundTrip(r)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(answers) == 0 {
				if _, err := c.try("annotate", "replicaset", path.Base(r.URL.Path), "looked-at=no"); err != nil {
					return nil, err
				}
			}
			response, err := next.RoundTrip(r)
			if err == nil {
				answers = append(answers, response.StatusCode)
			}
			return response, err
		})
	})
	c.run(config, deployments)
	c.create("web", 1, "0s", func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32) })
	c.rolledOut("web")
	c.kubectl("set", "image", "deployment/web", "main=web:2")
	c.eventually(func() string {
		if sets := c.sets(); len(sets) != 1 || sets[0].Spec.Template.Spec.Containers[0].Image != "web:2" {
			return fmt.Sprintf("%d sets", len(sets))
		}
		return ""
	})
	mu.Lock()
	defer mu.Unlock()
	// More conflicts where its informer lags, or a status is written meanwhile.
	if n := len(answers); n < 2 || answers[0] != http.StatusConflict || answers[n-1] != http.StatusOK {
		t.Errorf("the server answered %v, want a conflict, and in the end that it is deleted", answers)
	}
}

func TestReplicaSetsAreAdoptedAndReleased(t *testing.T) {
	c := start(t)
	c.create("web", 2, "0s")
	c.rolledOut("web")
	set := c.sets()[0]
	// The oldest set that has the template is the one that counts, by a creation time of whole
	// seconds, and then by name: the sets that follow are to be of a later second.
	c.eventually(func() string {
		if time.Since(set.CreationTimestamp.Time) < time.Second {
			return "the second in which the first set was created is not over"
		}
		return ""
	})
	// Nobody collects garbage here: the reference is taken away by hand.
	c.kubectl("delete", "deployment", "web", "--wait")
	c.kubectl("patch", "replicaset", set.Name, "--type", "merge", "--patch", `{"metadata":{"ownerReferences":null}}`)
	c.create("web", 2, "0s")
	c.rolledOut("web")
	sets := c.sets()
	if owner := object.ControllerOf(sets[0].OwnerReferences); len(sets) != 1 || sets[0].UID != set.UID || owner == nil || owner.UID != c.deployment("web").UID {
		t.Errorf("sets = %+v, want the orphan adopted", sets)
	}

	c.kubectl("label", "replicaset", set.Name, "app=other", "--overwrite")
	c.eventually(func() string {
		for _, s := range c.sets() {
			if s.UID == set.UID && len(s.OwnerReferences) == 0 {
				return ""
			}
		}
		return "the set that does not match any more is not released"
	})
	c.rolledOut("web") // with a set of its own by now
	c.kubectl("label", "replicaset", set.Name, "app=web", "--overwrite")
	c.eventually(func() string { // it is the older one with the template, and so the other one goes
		for _, s := range c.sets() {
			if owner := object.ControllerOf(s.OwnerReferences); owner == nil || (s.UID == set.UID) != (*s.Spec.Replicas == 2) || s.Status.Replicas != *s.Spec.Replicas {
				return fmt.Sprintf("the set that matches again has not taken over: %s has %d of %d", s.Name, s.Status.Replicas, *s.Spec.Replicas)
			}
		}
		return ""
	})
}

func TestNameThatAnotherSetHasIsACollision(t *testing.T) {
	c := start(t)
	c.create("web", 1, "0s")
	c.rolledOut("web")
	first := c.sets()[0]
	c.kubectl("delete", "deployment", "web", "--wait")
	c.kubectl("delete", "replicaset", first.Name, "--wait")
	other := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: first.Name}, Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "other"}}, Spec: first.Spec.Template.Spec},
	}}
	if _, err := client.For[*appsv1.ReplicaSet](c.Client).Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	c.create("web", 1, "0s")
	c.rolledOut("web")
	if count := c.deployment("web").Status.CollisionCount; count == nil || *count != 1 {
		t.Errorf("collisionCount = %v, want 1", count)
	}
	if sets := c.sets(); len(sets) != 2 {
		t.Errorf("%d sets, want the other one and ours", len(sets))
	}
}

// A process that takes over from one that has just created the set may not see it yet.
func TestASetOfTheSameTemplateThatIsThereAlreadyIsNoCollision(t *testing.T) {
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	c.run(c.Config, replicaSets)
	var refused atomic.Int32
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, c.namespace+"/replicasets") {
				return next.RoundTrip(r)
			}
			again := r.Clone(r.Context())
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			again.Body = body
			first, err := next.RoundTrip(again)
			if err != nil {
				return nil, err
			}
			if err := first.Body.Close(); err != nil {
				return nil, err
			}
			second, err := next.RoundTrip(r)
			if err == nil && second.StatusCode == http.StatusConflict {
				refused.Add(1)
			}
			return second, err
		})
	})
	c.run(config, deployments)
	c.create("web", 2, "0s")
	c.rolledOut("web")
	if n, sets, count := refused.Load(), len(c.sets()), c.deployment("web").Status.CollisionCount; n == 0 || sets != 1 || count != nil { // more than once where its informer lags
		t.Errorf("%d creates were refused, there are %d sets, and collisionCount is %v; want some, 1 and none", n, sets, count)
	}
}

func TestReplicaSetThatCannotBeCreatedIsReported(t *testing.T) {
	c := start(t)
	c.create("web", 1, "0s")
	c.rolledOut("web")
	c.kubectl("create", "quota", "none", "--hard", "count/replicasets.apps=1")
	// Nobody counts quotas here. The server goes by what their status says.
	c.kubectl("patch", "quota", "none", "--subresource", "status", "--type", "merge", "--patch",
		`{"status":{"hard":{"count/replicasets.apps":"1"},"used":{"count/replicasets.apps":"1"}}}`)
	c.eventually(func() string { // the server's admission has an informer too
		probe := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "probe"}, Spec: c.sets()[0].Spec}
		if _, err := client.For[*appsv1.ReplicaSet](c.Client).Create(t.Context(), probe, client.DryRun()); err == nil {
			return "the quota does not hold"
		}
		return ""
	})
	c.kubectl("set", "image", "deployment/web", "main=web:2")
	c.eventually(c.hasCondition("web", appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError"))
	c.eventually(c.hasEvent("ReplicaSetCreateError", "Failed to create new replica set"))
	if d := c.deployment("web"); d.Status.ObservedGeneration != d.Generation {
		t.Errorf("observed generation %d of %d", d.Status.ObservedGeneration, d.Generation)
	}
	c.kubectl("delete", "quota", "none")
	c.rolledOut("web")
}

func TestNothingIsRetriedInANamespaceThatTerminates(t *testing.T) {
	c := start(t)
	c.create("web", 1, "0s")
	c.rolledOut("web")
	before := c.deployment("web").Status
	c.kubectl("delete", "namespace", c.namespace, "--wait=false")
	c.kubectl("set", "image", "deployment/web", "main=web:2")
	// What comes after in the same queue has been worked on: so has this.
	other := c.beside()
	other.create("web", 1, "0s")
	other.rolledOut("web")
	if got := c.deployment("web").Status.Conditions; fmt.Sprint(got) != fmt.Sprint(before.Conditions) || len(c.sets()) != 1 {
		t.Errorf("conditions = %+v with %d sets, want nothing said of it and no new set", got, len(c.sets()))
	}
}

func TestDeploymentThatIsBeingDeletedIsOnlyCounted(t *testing.T) {
	c := start(t)
	c.create("web", 2, "0s", func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/hold"} })
	c.rolledOut("web")
	c.kubectl("delete", "deployment", "web", "--wait=false")
	c.kubectl("scale", "deployment/web", "--replicas", "5")
	c.kubectl("set", "image", "deployment/web", "main=web:2")
	c.eventually(func() string {
		if d := c.deployment("web"); d.Status.ObservedGeneration != d.Generation {
			return fmt.Sprintf("generation %d is not observed: %+v", d.Generation, d.Status)
		}
		return ""
	})
	if sets := c.sets(); len(sets) != 1 || *sets[0].Spec.Replicas != 2 {
		t.Errorf("sets = %+v, want them as they were", sets)
	}
	c.kubectl("patch", "deployment", "web", "--type", "merge", "--patch", `{"metadata":{"finalizers":null}}`)
}

func TestDeprecatedRollbackAnnotation(t *testing.T) {
	c := start(t)
	c.create("web", 1, "0s")
	c.rolledOut("web")
	c.kubectl("set", "image", "deployment/web", "main=web:2")
	c.rolledOut("web")
	c.kubectl("annotate", "deployment/web", "deprecated.deployment.rollback.to=0")
	c.eventually(func() string {
		d := c.deployment("web")
		if _, still := d.Annotations["deprecated.deployment.rollback.to"]; still || d.Spec.Template.Spec.Containers[0].Image != "web:1" {
			return fmt.Sprintf("not rolled back: %v %s", d.Annotations, d.Spec.Template.Spec.Containers[0].Image)
		}
		return ""
	})
	c.eventually(c.hasEvent("DeploymentRollback", `Rolled back deployment "web" to revision 1`))
}

func TestStatusIsNotWrittenWhereNothingChanged(t *testing.T) {
	c := start(t)
	c.create("web", 2, "0s")
	c.rolledOut("web")
	set := c.sets()[0]
	before := c.deployment("web")
	c.eventually(func() string { // the last status of the rollout
		last := before.ResourceVersion
		if before = c.deployment("web"); before.ResourceVersion != last {
			return "it is still being written"
		}
		return ""
	})
	c.kubectl("label", "replicaset", set.Name, "look=at-me")
	other := "web-2" // worked on after it, in the same queue
	c.create(other, 1, "0s")
	c.rolledOut(other)
	if now := c.deployment("web"); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("resourceVersion went from %s to %s", before.ResourceVersion, now.ResourceVersion)
	}
}
