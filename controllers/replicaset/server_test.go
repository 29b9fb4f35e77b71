// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// server is an API server of Pods, ReplicaSets and Events without a network: it is
// called as an HTTP transport, so that tests of the whole loop run in simulated
// time. It does what this controller relies on, and goes wrong in the ways that
// its fields choose. The fields are set before the first request.
type server struct {
	// lag is how late a change appears in watches. nil is at once.
	lag func() time.Duration
	// fate is asked about each write. nil is fine.
	fate func(request) fate
	// onCreate is called, with the server locked, after a Pod was stored.
	onCreate func(*corev1.Pod)

	mu      sync.Mutex
	version int
	pods    map[object.Key]*corev1.Pod
	sets    map[object.Key]*appsv1.ReplicaSet
	events  []*eventsv1.Event
	history map[string][]change // by resource
	more    chan struct{}       // closed and replaced with each change
	served  []request
}

// request is one that the server was asked, in its words.
type request struct {
	verb     string // get, list, watch, create, update, patch, delete
	resource string // pods, replicasets, replicasets/status, events
	key      object.Key
}

func (r request) String() string { return r.verb + " " + r.resource + " " + r.key.String() }

// fate is what becomes of a write.
type fate struct {
	refuse  *metav1.Status // it is refused
	takes   time.Duration  // how long it takes
	lose    bool           // it is done, and the connection breaks
	stalled time.Duration  // not zero: the connection breaks, and it is done this much later
}

// change is an event of a watch.
type change struct {
	version int
	kind    string
	object  json.RawMessage
	at      time.Time
	seen    time.Time // when watches show it
}

func newServer() *server {
	return &server{
		pods: map[object.Key]*corev1.Pod{}, sets: map[object.Key]*appsv1.ReplicaSet{},
		history: map[string][]change{}, more: make(chan struct{}),
	}
}

// process is the way of one process to the server. When it is killed, its requests
// fail, and the server drops those that it has not begun to carry out.
type process struct {
	server *server
	mu     sync.Mutex
	killed bool
}

var errReset = errors.New("connection reset by peer")

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
}

func (p *process) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// RoundTrip implements http.RoundTripper.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.dead() {
		return nil, errReset
	}
	if r.URL.Path == "/version" {
		return answer(http.StatusOK, map[string]string{}), nil
	}
	ask := parse(r)
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s := p.server
	if ask.verb == "watch" {
		return s.watch(r, ask.resource), nil
	}
	var f fate
	if s.fate != nil && ask.verb != "get" && ask.verb != "list" {
		f = s.fate(ask)
	}
	switch {
	case f.refuse != nil:
		s.note(ask)
		return answer(int(f.refuse.Code), f.refuse), nil
	case f.stalled > 0:
		time.AfterFunc(f.stalled, func() {
			if !p.dead() {
				s.do(ask, body)
			}
		})
		return nil, errReset
	}
	if err := pause(r.Context(), f.takes); err != nil {
		return nil, err
	}
	if p.dead() {
		return nil, errReset
	}
	code, result := s.do(ask, body)
	if f.lose || p.dead() {
		return nil, errReset
	}
	return answer(code, result), nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func answer(code int, body any) *http.Response {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(data)),
	}
}

func refusal(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

// parse reads …/namespaces/NS/PLURAL[/NAME[/SUB]] and …/PLURAL.
func parse(r *http.Request) request {
	ask := request{verb: map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update",
		http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[r.Method]}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	parts = parts[2:] // api/v1
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		parts = parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		ask.key.Namespace, parts = parts[1], parts[2:]
	}
	ask.resource = parts[0]
	if len(parts) > 1 {
		ask.key.Name = parts[1]
	}
	if len(parts) > 2 {
		ask.resource += "/" + parts[2]
	}
	if ask.verb == "get" && ask.key.Name == "" {
		ask.verb = "list"
		if r.URL.Query().Get("watch") == "true" {
			ask.verb = "watch"
		}
	}
	return ask
}

// decode reads a body in either encoding.
func decode[T object.Object](body []byte) T {
	o := object.New[T]()
	encoding := wire.JSON
	if !bytes.HasPrefix(body, []byte("{")) {
		encoding = wire.Protobuf
	}
	_, _, raw, err := encoding.Open(body)
	if err == nil {
		err = encoding.Decode(raw, o)
	}
	if err != nil {
		panic(fmt.Sprintf("the controller sent what cannot be read: %v", err))
	}
	return o
}

func (s *server) note(ask request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = append(s.served, ask)
}

// do carries out everything but watches.
func (s *server) do(ask request, body []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = append(s.served, ask)
	switch ask.resource {
	case "pods":
		return s.doPod(ask, body)
	case "replicasets", "replicasets/status":
		return s.doSet(ask, body)
	case "events":
		if ask.verb == "create" {
			e := decode[*eventsv1.Event](body)
			s.events = append(s.events, e)
			return http.StatusCreated, e
		}
		return http.StatusOK, &eventsv1.Event{} // a count
	}
	panic("the controller asked for " + ask.String())
}

func (s *server) doPod(ask request, body []byte) (int, any) {
	switch ask.verb {
	case "list":
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: s.listMeta()}
		for _, pod := range s.pods {
			list.Items = append(list.Items, *pod)
		}
		return http.StatusOK, list
	case "create":
		pod := decode[*corev1.Pod](body)
		key := object.Key{Namespace: ask.key.Namespace, Name: pod.Name}
		if pod.Name == "" {
			panic("a Pod without a name was sent")
		}
		if s.pods[key] != nil {
			status := refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists, "pods "+pod.Name+" already exists")
			return int(status.Code), status
		}
		pod.Status.Phase = corev1.PodPending
		s.putPod("ADDED", pod)
		if s.onCreate != nil {
			s.onCreate(pod)
		}
		return http.StatusCreated, pod
	}
	pod := s.pods[ask.key]
	if pod == nil {
		return http.StatusNotFound, refusal(http.StatusNotFound, metav1.StatusReasonNotFound, "pods "+ask.key.Name+" not found")
	}
	switch ask.verb {
	case "get":
		return http.StatusOK, pod
	case "delete":
		var options metav1.DeleteOptions
		if err := json.Unmarshal(body, &options); err != nil || options.Preconditions == nil || options.Preconditions.UID == nil {
			panic("a Pod was to be deleted without saying which: " + string(body))
		}
		if *options.Preconditions.UID != pod.UID {
			return http.StatusConflict, refusal(http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition is another one")
		}
		s.endPod(pod)
		return http.StatusOK, pod
	case "patch":
		before, err := json.Marshal(pod)
		if err != nil {
			panic(err)
		}
		after, err := strategicpatch.StrategicMergePatch(before, body, corev1.Pod{})
		if err != nil {
			panic(fmt.Sprintf("patch %s: %v", body, err))
		}
		var next corev1.Pod
		if err := json.Unmarshal(after, &next); err != nil {
			panic(err)
		}
		if next.UID != pod.UID {
			return http.StatusConflict, refusal(http.StatusConflict, metav1.StatusReasonConflict, "the UID in the patch is another one")
		}
		s.putPod("MODIFIED", &next)
		return http.StatusOK, &next
	}
	panic("the controller asked for " + ask.String())
}

func (s *server) doSet(ask request, body []byte) (int, any) {
	if ask.verb == "list" {
		list := appsv1.ReplicaSetList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSetList"}, ListMeta: s.listMeta()}
		for _, set := range s.sets {
			list.Items = append(list.Items, *set)
		}
		return http.StatusOK, list
	}
	set := s.sets[ask.key]
	if set == nil {
		return http.StatusNotFound, refusal(http.StatusNotFound, metav1.StatusReasonNotFound, "replicasets "+ask.key.Name+" not found")
	}
	switch {
	case ask.verb == "get":
		return http.StatusOK, set
	case ask.verb == "update" && ask.resource == "replicasets/status":
		sent := decode[*appsv1.ReplicaSet](body)
		if sent.ResourceVersion != set.ResourceVersion {
			return http.StatusConflict, refusal(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		}
		next := set.DeepCopy()
		next.Status = sent.Status
		s.putSet("MODIFIED", next)
		return http.StatusOK, next
	}
	panic("the controller asked for " + ask.String())
}

func (s *server) listMeta() metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}
}

// putPod stores a Pod. The server is locked.
func (s *server) putPod(kind string, pod *corev1.Pod) {
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	s.stamp(kind, &pod.ObjectMeta)
	s.pods[object.KeyOf(pod)] = pod
	s.changed(kind, "pods", pod)
}

// endPod begins to delete a Pod, or ends it if it has not been scheduled. The
// server is locked.
func (s *server) endPod(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		return
	}
	pod = pod.DeepCopy()
	if pod.Spec.NodeName != "" {
		pod.DeletionTimestamp = new(metav1.Now())
		s.putPod("MODIFIED", pod)
		return
	}
	s.dropPod(pod)
}

// dropPod takes a Pod away. The server is locked.
func (s *server) dropPod(pod *corev1.Pod) {
	pod = pod.DeepCopy()
	delete(s.pods, object.KeyOf(pod))
	s.stamp("DELETED", &pod.ObjectMeta)
	s.changed("DELETED", "pods", pod)
}

// putSet stores a ReplicaSet. The server is locked.
func (s *server) putSet(kind string, set *appsv1.ReplicaSet) {
	set.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}
	s.stamp(kind, &set.ObjectMeta)
	s.sets[object.KeyOf(set)] = set
	s.changed(kind, "replicasets", set)
}

func (s *server) stamp(kind string, m *metav1.ObjectMeta) {
	s.version++
	m.ResourceVersion = strconv.Itoa(s.version)
	if kind == "ADDED" {
		m.CreationTimestamp = metav1.Now()
		if m.UID == "" {
			m.UID = types.UID(fmt.Sprintf("uid-%d", s.version))
		}
	}
}

func (s *server) changed(kind, resource string, o any) {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	now := time.Now()
	seen := now
	if s.lag != nil {
		seen = seen.Add(s.lag())
	}
	s.history[resource] = append(s.history[resource], change{s.version, kind, data, now, seen})
	close(s.more)
	s.more = make(chan struct{})
}

// watch answers with what changes after a version, each change when it is to be
// seen.
func (s *server) watch(r *http.Request, resource string) *http.Response {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		return answer(http.StatusUnprocessableEntity, refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "no watch lists here"))
	}
	after, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		panic("a watch from nowhere: " + r.URL.String())
	}
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		defer writer.Close()
		out := json.NewEncoder(writer)
		for next := 0; ; {
			s.mu.Lock()
			changes, more := s.history[resource], s.more
			s.mu.Unlock()
			for ; next < len(changes); next++ {
				c := changes[next]
				if c.version <= after {
					continue
				}
				if pause(ctx, time.Until(c.seen)) != nil || out.Encode(map[string]any{"type": c.kind, "object": c.object}) != nil {
					return
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: &watchBody{reader, cancel},
	}
}

type watchBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *watchBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// What tests do to the world.

func (s *server) addSet(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	set = set.DeepCopy()
	set.Generation = 1
	s.putSet("ADDED", set)
	return set
}

func (s *server) changeSet(key object.Key, change func(*appsv1.ReplicaSet)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.sets[key].DeepCopy()
	change(set)
	set.Generation++
	s.putSet("MODIFIED", set)
}

func (s *server) addPod(pod *corev1.Pod) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod = pod.DeepCopy()
	s.putPod("ADDED", pod)
	return pod
}

func (s *server) changePod(key object.Key, change func(*corev1.Pod)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod := s.pods[key]; pod != nil {
		pod = pod.DeepCopy()
		change(pod)
		s.putPod("MODIFIED", pod)
	}
}

// What tests look at.

func (s *server) set(key object.Key) *appsv1.ReplicaSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sets[key]
}

// allPods returns the Pods there are, in the order of their names.
func (s *server) allPods() []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.pods))
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// active counts a ReplicaSet's active Pods. The server is locked.
func (s *server) active(owner types.UID) int {
	n := 0
	for _, pod := range s.pods {
		if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.UID == owner && isActive(pod) {
			n++
		}
	}
	return n
}

// asked returns the requests that have one of the verbs and the resource.
func (s *server) asked(resource string, verbs ...string) []request {
	var all []request
	for _, ask := range s.all() {
		if ask.resource == resource && slices.Contains(verbs, ask.verb) {
			all = append(all, ask)
		}
	}
	return all
}

// all returns the requests that were carried out or refused, in order.
func (s *server) all() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.served)
}

// told returns the notes of the events with a reason.
func (s *server) told(reason string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var notes []string
	for _, e := range s.events {
		if e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isActive reports whether a Pod is one of those that a ReplicaSet asks for.
func isActive(pod *corev1.Pod) bool { return !hasEnded(pod) && pod.DeletionTimestamp == nil }
