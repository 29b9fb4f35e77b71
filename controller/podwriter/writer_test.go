// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// world is a server of Pods, and a Writer for the ReplicaSet shop/web.
type world struct {
	server *fakeapi.Resource
	api    *client.Client
	writer *Writer
	owner  Owner

	mu   sync.Mutex
	said []string // reasons and messages
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})}
	var err error
	if w.api, err = client.New(w.server.Config()); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, UID: "web-uid"}}
	w.owner = Owner{set, object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true}}
	w.writer = New(w.api, events.NewRecorder(w.api, "test", "test", slog.New(slog.DiscardHandler))).WithMessages(w.note)
	return w
}

// note notes what is said, in the usual words.
func (w *world) note(reason string, owner Owner, pod *corev1.Pod, err error) string {
	text := message(reason, owner, pod, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, reason+": "+text)
	return text
}

func (w *world) pod() *corev1.Pod {
	return FromTemplate(w.owner, &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Finalizers: []string{"example.com/tracking"}},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
	})
}

func (w *world) create(t *testing.T, wanted ...*corev1.Pod) ([]*corev1.Pod, error) {
	t.Helper()
	return w.writer.Create(t.Context(), w.owner, wanted, func(name string) bool {
		return w.server.Get(object.Key{Namespace: web.Namespace, Name: name}) != nil
	})
}

func TestPodsAreTheirOwnersAndThoseOfTheTemplate(t *testing.T) {
	w := newWorld(t)
	made, err := w.create(t, slices.Repeat([]*corev1.Pod{w.pod()}, 7)...)
	if err != nil || len(made) != 7 || len(w.server.Keys()) != 7 {
		t.Fatalf("%d Pods were made, and the server has %v: %v", len(made), w.server.Keys(), err)
	}
	for _, pod := range made {
		if pod.UID == "" || pod.Namespace != "shop" || !strings.HasPrefix(pod.Name, "web-") || pod.Labels["app"] != "web" ||
			pod.Spec.NodeName != "node-1" || !slices.Equal(pod.Finalizers, []string{"example.com/tracking"}) || !metav1.IsControlledBy(pod, w.owner.Object) {
			t.Errorf("made %+v", pod)
		}
		if !slices.Contains(w.said, "SuccessfulCreate: Created pod: "+pod.Name) {
			t.Errorf("no Event of %s in %q", pod.Name, w.said)
		}
	}
}

func TestAFailureEndsTheCreatesAndCostsFewRequests(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int32
	w.server.Before(func(*fakeapi.Request) *metav1.Status {
		if asked.Add(1) > 2 {
			return fakeapi.Forbidden("exceeded quota")
		}
		return nil
	})
	made, err := w.create(t, slices.Repeat([]*corev1.Pod{w.pod()}, 500)...)
	if err == nil || !strings.Contains(err.Error(), "exceeded quota") || len(made) != 2 {
		t.Errorf("%d Pods were made: %v", len(made), err)
	}
	if n := asked.Load(); n != 3 { // batches of 1 and 2
		t.Errorf("%d requests, want 3", n)
	}
	said := strings.Join(w.said, "\n")
	if strings.Count(said, "SuccessfulCreate: ") != 2 || strings.Count(said, "FailedCreate: Error creating: ") != 1 {
		t.Errorf("the Events are %q", w.said)
	}
}

func TestANamespaceThatIsBeingDeletedIsNoFailure(t *testing.T) {
	w := newWorld(t)
	w.server.Before(func(*fakeapi.Request) *metav1.Status {
		status := fakeapi.Forbidden("it is being terminated")
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
		return status
	})
	made, err := w.create(t, w.pod(), w.pod(), w.pod())
	if err != nil || len(made) != 0 || len(w.said) != 0 {
		t.Errorf("made %v, error %v, Events %q", made, err, w.said)
	}
}

// An answer was lost: the Pod is there, and the cache does not show it yet.
func TestACreateWhoseAnswerWasLostIsNotMadeTwice(t *testing.T) {
	for name, given := range map[string]string{"a name that is generated": "", "a name that is given": "web-0"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			lost := false
			w.server.LoseAnswer(func(q *fakeapi.Request) bool {
				loses := q.Verb == "create" && !lost
				lost = lost || loses
				return loses
			})
			pod := w.pod()
			pod.Name = given
			if _, err := w.writer.Create(t.Context(), w.owner, []*corev1.Pod{pod}, nothingUsed); err == nil {
				t.Fatal("the create went well")
			}
			made, err := w.writer.Create(t.Context(), w.owner, []*corev1.Pod{pod}, nothingUsed)
			if err != nil || len(made) != 1 || len(w.server.Keys()) != 1 {
				t.Errorf("made %v: %v; the server has %v", made, err, w.server.Keys())
			}
		})
	}
}

func TestAPodOfAnotherOwnerKeepsItsName(t *testing.T) {
	w := newWorld(t)
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	if err := w.server.Add(foreign); err != nil {
		t.Fatal(err)
	}
	pod := w.pod()
	pod.Name = "web-0"
	if made, err := w.create(t, pod); err == nil || len(made) != 0 || !strings.HasPrefix(w.said[0], "FailedCreate") {
		t.Errorf("made %v, error %v, Events %q", made, err, w.said)
	}
	// With a generated name another one is drawn.
	w.writer.names.keep(web, "web-uid", "web-aaaaa", "", noon)
	foreign.Name, foreign.ResourceVersion, foreign.UID = "web-aaaaa", "", ""
	if err := w.server.Add(foreign); err != nil {
		t.Fatal(err)
	}
	made, err := w.writer.Create(t.Context(), w.owner, []*corev1.Pod{w.pod()}, nothingUsed)
	if err != nil || len(made) != 1 || made[0].Name == "web-aaaaa" {
		t.Errorf("made %v: %v", made, err)
	}
}

func TestPodsAreDeletedByTheirUIDs(t *testing.T) {
	w := newWorld(t)
	made, err := w.create(t, slices.Repeat([]*corev1.Pod{w.pod()}, 5)...)
	if err != nil {
		t.Fatal(err)
	}
	gone := made[1].DeepCopy()
	gone.Name = "web-gone"
	w.said = nil
	w.server.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "delete" && strings.HasSuffix(q.HTTP.URL.Path, made[3].Name) {
			return fakeapi.Forbidden("a webhook says no")
		}
		return nil
	})
	deleted, err := w.writer.Delete(t.Context(), w.owner, []*corev1.Pod{made[0], gone, made[3], made[4]})
	if err == nil || !slices.Equal(deleted, []bool{true, true, false, true}) {
		t.Errorf("deleted %v: %v", deleted, err)
	}
	want := []string{object.KeyOf(made[1]).String(), object.KeyOf(made[2]).String(), object.KeyOf(made[3]).String()}
	slices.Sort(want)
	have := slices.DeleteFunc(w.server.Keys(), func(text string) bool { // their finalizers keep the deleted ones
		key, err := object.ParseKey(text)
		return err != nil || w.server.Get(key).GetDeletionTimestamp() != nil
	})
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("the server has %v, want %v", have, want)
	}
	said := strings.Join(w.said, "\n")
	if strings.Count(said, "SuccessfulDelete: Deleted pod: ") != 2 || strings.Count(said, "FailedDelete: Error deleting: ") != 1 {
		t.Errorf("the Events are %q", w.said)
	}
}

// A server that has just lost a kind, or a proxy, says "not found" of Pods that are there.
func TestAPodIsGoneOnlyIfTheAnswerIsAboutIt(t *testing.T) {
	w := newWorld(t)
	made, err := w.create(t, w.pod())
	if err != nil {
		t.Fatal(err)
	}
	w.server.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "delete" {
			return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "no such page"}
		}
		return nil
	})
	if deleted, err := w.writer.Delete(t.Context(), w.owner, made); err == nil || deleted[0] {
		t.Errorf("deleted %v: %v", deleted, err)
	}
}

func TestNothingIsSaidWhenTheControllerStops(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w.server.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("create") })
	if _, err := w.writer.Create(ctx, w.owner, []*corev1.Pod{w.pod()}, nothingUsed); err == nil || len(w.said) != 0 {
		t.Errorf("error %v, Events %q", err, w.said)
	}
}

// The Pods of a DaemonSet have one generateName and differ by their nodes. A create for one
// node is lost; the next run asks for the other node first.
func TestALostNameIsUsedAgainForTheSamePlaceOnly(t *testing.T) {
	w := newWorld(t)
	w.writer.WithSlots(func(pod *corev1.Pod) string { return pod.Spec.NodeName })
	on := func(node string) *corev1.Pod {
		pod := w.pod()
		pod.Spec.NodeName = node
		return pod
	}
	w.server.LoseNext(1, "create")
	if _, err := w.writer.Create(t.Context(), w.owner, []*corev1.Pod{on("node-1")}, nothingUsed); err == nil {
		t.Fatal("the create went well")
	}
	if _, err := w.writer.Create(t.Context(), w.owner, []*corev1.Pod{on("node-2"), on("node-1")}, nothingUsed); err != nil {
		t.Fatal(err)
	}
	if nodes := w.nodes(); !slices.Equal(nodes, []string{"node-1", "node-2"}) {
		t.Errorf("there are Pods on %v", nodes)
	}
}

// nodes returns the nodes of the server's Pods, sorted.
func (w *world) nodes() []string {
	var nodes []string
	for _, text := range w.server.Keys() {
		key, err := object.ParseKey(text)
		if err != nil {
			panic(err)
		}
		node, _, _ := unstructured.NestedString(w.server.Get(key).Object, "spec", "nodeName")
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

func TestTheGenerateNameOfALongOwnerIsOneThatAServerAccepts(t *testing.T) {
	for length, want := range map[int]string{1: "w-", 252: strings.Repeat("w", 252) + "-", 253: strings.Repeat("w", 253)} {
		owner := Owner{Object: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("w", length)}}}
		if got := FromTemplate(owner, &corev1.PodTemplateSpec{}).GenerateName; got != want {
			t.Errorf("an owner whose name has %d bytes: generateName has %d: %s", length, len(got), got)
		}
	}
}

// A StatefulSet creates the claims of a Pod first.
func TestWhatAPodNeedsIsCreatedWithinTheSlowStart(t *testing.T) {
	w := newWorld(t)
	var prepared atomic.Int32
	w.writer.BeforeCreate(func(_ context.Context, owner Owner, pod *corev1.Pod) error {
		if owner != w.owner || pod.Name == "" {
			t.Errorf("prepares Pod %q of %v", pod.Name, owner)
		}
		if prepared.Add(1) > 2 {
			return errors.New("claims cannot be created")
		}
		return nil
	})
	made, err := w.create(t, slices.Repeat([]*corev1.Pod{w.pod()}, 500)...)
	if err == nil || err.Error() != "claims cannot be created" || len(made) != 2 || prepared.Load() != 3 {
		t.Errorf("%d Pods were made, %d were prepared: %v", len(made), prepared.Load(), err)
	}
	if said := strings.Join(w.said, "\n"); strings.Count(said, "FailedCreate: Error creating: claims cannot be created") != 1 {
		t.Errorf("the Events are %q", w.said)
	}
}

// A Job takes its finalizer off a Pod first.
func TestAPodIsNotDeletedIfItCannotBePrepared(t *testing.T) {
	w := newWorld(t)
	made, err := w.create(t, w.pod(), w.pod(), w.pod())
	if err != nil {
		t.Fatal(err)
	}
	w.said = nil
	gone := apierrors.NewNotFound(corev1.Resource("pods"), made[1].Name)
	w.writer.BeforeDelete(func(_ context.Context, _ Owner, pod *corev1.Pod) error {
		return map[string]error{made[0].Name: errors.New("its finalizer stays"), made[1].Name: gone}[pod.Name]
	})
	deleted, err := w.writer.Delete(t.Context(), w.owner, made)
	if err == nil || !strings.Contains(err.Error(), made[0].Name+": its finalizer stays") || !slices.Equal(deleted, []bool{false, true, true}) {
		t.Errorf("deleted %v: %v", deleted, err)
	}
	if len(w.said) != 1 || !strings.HasPrefix(w.said[0], SuccessfulDelete) {
		t.Errorf("the Events are %q", w.said)
	}
}

// A Pod that has changed since it was read, so that its finalizer stays, is neither deleted nor gone.
func TestAPodWhosePreparationConflictsIsNotReportedAsDeleted(t *testing.T) {
	w := newWorld(t)
	made, err := w.create(t, w.pod())
	if err != nil {
		t.Fatal(err)
	}
	w.said = nil
	w.writer.BeforeDelete(func(_ context.Context, _ Owner, pod *corev1.Pod) error {
		return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errors.New("it has changed"))
	})
	for name, remove := range map[string]func() ([]bool, error){
		"Delete":          func() ([]bool, error) { return w.writer.Delete(t.Context(), w.owner, made) },
		"DeleteUnchanged": func() ([]bool, error) { return w.writer.DeleteUnchanged(t.Context(), w.owner, made) },
	} {
		if deleted, err := remove(); !apierrors.IsConflict(err) || deleted[0] {
			t.Errorf("%s has deleted %v, with the error %v", name, deleted, err)
		}
	}
	if len(w.said) != 0 {
		t.Errorf("the Events are %q", w.said)
	}
}
