// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// server is an API server in memory, with the resources that the controller uses. Tests of
// the whole loop run in simulated time.
type server struct {
	*fakeapi.Server
	t      *testing.T
	pods   *fakeapi.Resource
	sets   *fakeapi.Resource
	events *fakeapi.Resource
}

func newServer(t *testing.T) *server {
	api := fakeapi.New()
	s := &server{
		Server: api, t: t, pods: api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}), sets: api.Serve(replicaSets),
		events: api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}),
	}
	// A Pod of the same name may be another one by the time that a delete arrives.
	api.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "delete" && q.Resource == s.pods.Resource && !namesUID(q.HTTP) {
			t.Errorf("Pod %s was to be deleted by its name alone", q.Key)
		}
		return nil
	})
	return s
}

// namesUID reports whether a delete is for an object of one UID only.
func namesUID(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var options metav1.DeleteOptions
	return err == nil && json.Unmarshal(body, &options) == nil && options.Preconditions != nil && options.Preconditions.UID != nil
}

// refuse has a resource answer writes with the Status that answer returns, if it is not nil.
func refuse(r *fakeapi.Resource, answer func(*fakeapi.Request) *metav1.Status) {
	r.Before(func(q *fakeapi.Request) *metav1.Status {
		if !isWrite(q) {
			return nil
		}
		return answer(q)
	})
}

func isWrite(q *fakeapi.Request) bool {
	return q.Verb != "get" && q.Verb != "list" && q.Verb != "watch"
}

func refusal(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

// process is the way of one process to the server. When the process is killed, its
// requests fail, and the server drops those that it has not begun to carry out.
type process struct {
	server *fakeapi.Server
	// stall returns how long the server sits on a request whose connection has broken, or 0
	// for a connection that holds. nil is 0.
	stall func(*http.Request) time.Duration
	alive context.Context
	kill  context.CancelFunc
}

func newProcess(t *testing.T, s *server, stall func(*http.Request) time.Duration) *process {
	alive, kill := context.WithCancel(t.Context())
	return &process{s.Server, stall, alive, kill}
}

// RoundTrip implements http.RoundTripper.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.alive.Err() != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if p.stall != nil {
		if stalled := p.stall(r); stalled > 0 {
			return nil, p.carryOutLater(r, stalled)
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(p.alive, cancel)
	return p.server.RoundTrip(r.WithContext(ctx))
}

// carryOutLater has the server carry out a request whose connection has broken, unless the
// process is killed before.
func (p *process) carryOutLater(r *http.Request, stalled time.Duration) error {
	later := r.Clone(p.alive)
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		later.Body = io.NopCloser(bytes.NewReader(body))
	}
	time.AfterFunc(stalled, func() {
		if p.alive.Err() != nil {
			return
		}
		if answer, err := p.server.RoundTrip(later); err == nil {
			_ = answer.Body.Close() // nobody reads it
		}
	})
	return io.ErrUnexpectedEOF
}

// What tests do to the objects.

func (s *server) addSet(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	s.t.Helper()
	s.checkWrite(s.sets.Add(set))
	return s.set(object.KeyOf(set))
}

// changeSet changes a ReplicaSet's specification.
func (s *server) changeSet(key object.Key, change func(*appsv1.ReplicaSet)) {
	s.t.Helper()
	s.checkWrite(fakeapi.Change(s.sets, key, func(set *appsv1.ReplicaSet) {
		change(set)
		set.Generation++
	}))
}

func (s *server) addPod(pod *corev1.Pod) {
	s.t.Helper()
	s.checkWrite(s.pods.Add(pod))
}

func (s *server) changePod(key object.Key, change func(*corev1.Pod)) {
	s.t.Helper()
	s.checkWrite(fakeapi.Change(s.pods, key, change))
}

// What tests look at.

func (s *server) set(key object.Key) *appsv1.ReplicaSet {
	s.t.Helper()
	set, err := fakeapi.Read[*appsv1.ReplicaSet](s.sets, key)
	s.check(err)
	return set
}

// allPods returns the Pods in the order of their names.
func (s *server) allPods() []*corev1.Pod {
	s.t.Helper()
	pods, err := fakeapi.Objects[*corev1.Pod](s.pods)
	s.check(err)
	return pods
}

// asked returns the requests with one of the verbs for a resource, without those for its
// subresources.
func (*server) asked(r *fakeapi.Resource, verbs ...string) []fakeapi.Request {
	return slices.DeleteFunc(r.Requests(), func(q fakeapi.Request) bool { return q.Subresource != "" || !slices.Contains(verbs, q.Verb) })
}

// statusWrites returns the writes of ReplicaSets' statuses.
func (s *server) statusWrites() []fakeapi.Request {
	return slices.DeleteFunc(s.sets.Requests(), func(q fakeapi.Request) bool { return q.Subresource != "status" })
}

// told returns the notes of the Events with a reason.
func (s *server) told(reason string) []string {
	s.t.Helper()
	events, err := fakeapi.Objects[*eventsv1.Event](s.events)
	s.check(err)
	var notes []string
	for _, e := range events {
		if e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// checkWrite may be called by any goroutine.
func (s *server) checkWrite(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

// check ends the test that calls it if there is an error.
func (s *server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// active counts a ReplicaSet's active Pods.
func active(pods []*corev1.Pod, owner types.UID) int {
	n := 0
	for _, pod := range pods {
		if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.UID == owner && isActive(pod) {
			n++
		}
	}
	return n
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isActive reports whether a Pod is one of those that a ReplicaSet asks for.
func isActive(pod *corev1.Pod) bool { return !hasEnded(pod) && pod.DeletionTimestamp == nil }
