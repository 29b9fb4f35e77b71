// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Server is a running server. Its fields are set before the first request.
type Server struct {
	// Before is called with each request before it is carried out. An answer
	// with a code ends the request there.
	Before func(verb string, r *http.Request) *metav1.Status
	// LoseAnswer reports, after a request was carried out, whether the connection
	// breaks before the answer is sent.
	LoseAnswer func(verb string, r *http.Request) bool

	resource object.Resource
	http     *httptest.Server

	mu      sync.Mutex
	version int
	objects map[object.Key]map[string]any
	events  []watchEvent  // all that ever happened; event i made version i+1
	more    chan struct{} // closed and replaced at each event
	held    bool          // watches deliver nothing
}

type watchEvent struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// Start starts a server of one resource. Close it.
func Start(resource object.Resource) *Server {
	s := InMemory(resource)
	s.http = httptest.NewServer(s)
	return s
}

// Config is what a client needs.
func (s *Server) Config() *rest.Config {
	if s.http == nil {
		return &rest.Config{Host: "http://in-memory", Transport: s}
	}
	return &rest.Config{Host: s.http.URL}
}

// Close ends the server and every connection to it.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// CutConnections breaks all connections. New ones are taken.
func (s *Server) CutConnections() { s.http.CloseClientConnections() }

// HoldWatches has watches deliver nothing until it is called with false: caches
// fall behind.
func (s *Server) HoldWatches(hold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = hold
	s.wake()
}

// Keys returns what there is, in order.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for key := range s.objects {
		all = append(all, key.String())
	}
	slices.Sort(all)
	return all
}

func (s *Server) wake() {
	close(s.more)
	s.more = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		writeJSON(w, http.StatusOK, map[string]any{"gitVersion": "v0.0.0-fake"})
		return
	}
	if isDiscovery(r.URL.Path) {
		writeJSON(w, http.StatusOK, discovery(r.URL.Path, s.resource))
		return
	}
	key, subresource, ok := s.parse(r.URL.Path)
	if !ok {
		writeStatus(w, status(http.StatusNotFound, metav1.StatusReasonNotFound, "no such path: "+r.URL.Path))
		return
	}
	verb := verbOf(r, key)
	if s.Before != nil {
		if refusal := s.Before(verb, r); refusal != nil {
			writeStatus(w, refusal)
			return
		}
	}
	if verb == "watch" {
		s.watch(w, r, key.Namespace)
		return
	}
	body, err := readJSON(r)
	if err != nil {
		writeStatus(w, status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
		return
	}
	code, answer := s.do(verb, key, subresource, body)
	if s.LoseAnswer != nil && s.LoseAnswer(verb, r) {
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
	writeJSON(w, code, answer)
}

// readJSON reads a request's body, and turns the protobuf of a built-in kind into
// JSON. Patches have media types of their own and are JSON.
func readJSON(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != wire.Protobuf.MediaType() {
		return body, err
	}
	apiVersion, kind, raw, err := wire.Protobuf.Open(body)
	if err != nil {
		return nil, err
	}
	o, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(apiVersion, kind))
	if err != nil {
		return nil, err
	}
	if err := wire.Protobuf.Decode(raw, o); err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	return json.Marshal(o)
}

func verbOf(r *http.Request, key object.Key) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	switch {
	case r.URL.Query().Get("watch") == "true":
		return "watch"
	case key.Name == "":
		return "list"
	}
	return "get"
}

// parse reads /api/v1/[namespaces/NS/]PLURAL[/NAME[/SUB]].
func (s *Server) parse(path string) (key object.Key, subresource string, ok bool) {
	prefix := "/apis/" + s.resource.APIVersion() + "/"
	if s.resource.Group == "" {
		prefix = "/api/" + s.resource.Version + "/"
	}
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return key, "", false
	}
	parts := strings.Split(rest, "/")
	if len(parts) > 2 && parts[0] == "namespaces" {
		key.Namespace, parts = parts[1], parts[2:]
	}
	if parts[0] != s.resource.Plural || len(parts) > 3 {
		return key, "", false
	}
	if len(parts) > 1 {
		key.Name = parts[1]
	}
	if len(parts) > 2 {
		subresource = parts[2]
	}
	return key, subresource, true
}

func (s *Server) do(verb string, key object.Key, subresource string, body []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch verb {
	case "list":
		return http.StatusOK, s.list(key.Namespace)
	case "create":
		return s.create(key.Namespace, body)
	}
	now, found := s.objects[key]
	if !found {
		absent := status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", s.resource, key.Name))
		absent.Details = &metav1.StatusDetails{Name: key.Name, Group: s.resource.Group, Kind: s.resource.Plural}
		return http.StatusNotFound, absent
	}
	switch verb {
	case "get":
		return http.StatusOK, now
	case "delete":
		var options metav1.DeleteOptions
		if len(body) > 0 && json.Unmarshal(body, &options) != nil {
			return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "malformed options")
		}
		if p := options.Preconditions; p != nil && p.UID != nil && string(*p.UID) != meta(now)["uid"] {
			return refuse(http.StatusConflict, metav1.StatusReasonConflict, "the UID is another one")
		}
		if p := options.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != meta(now)["resourceVersion"] {
			return refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		}
		delete(s.objects, key)
		s.happened("DELETED", now)
		return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	}
	var change map[string]any
	if err := json.Unmarshal(body, &change); err != nil {
		return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	next := change
	if verb == "patch" {
		next = merge(now, change)
	} else if sent, ok := meta(change)["resourceVersion"]; ok && sent != meta(now)["resourceVersion"] {
		return refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	}
	if subresource == "status" {
		status := next["status"]
		next = maps.Clone(now)
		next["status"] = status
	}
	next["metadata"] = merge(meta(next), map[string]any{"uid": meta(now)["uid"]})
	s.objects[key] = next
	s.happened("MODIFIED", next)
	return http.StatusOK, s.objects[key]
}

func (s *Server) create(namespace string, body []byte) (int, any) {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	m := maps.Clone(meta(o))
	if name, _ := m["name"].(string); name == "" {
		m["name"] = fmt.Sprintf("%s%05d", m["generateName"], s.version+1)
	}
	m["namespace"] = namespace
	m["uid"] = fmt.Sprintf("uid-%d", s.version+1)
	m["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	o["metadata"] = m
	key := object.Key{Namespace: namespace, Name: m["name"].(string)}
	if _, taken := s.objects[key]; taken {
		return refuse(http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%s %q already exists", s.resource, key.Name))
	}
	s.objects[key] = o
	s.happened("ADDED", o)
	return http.StatusCreated, s.objects[key]
}

// happened gives an object the next version and tells the watches.
func (s *Server) happened(kind string, o map[string]any) {
	s.version++
	o = maps.Clone(o)
	m := maps.Clone(meta(o))
	m["resourceVersion"] = strconv.Itoa(s.version)
	o["metadata"] = m
	o["apiVersion"], o["kind"] = s.resource.APIVersion(), s.resource.Kind
	key := object.Key{Name: m["name"].(string)}
	key.Namespace, _ = m["namespace"].(string)
	if kind != "DELETED" {
		s.objects[key] = o
	}
	s.events = append(s.events, watchEvent{kind, o})
	s.wake()
}

func (s *Server) list(namespace string) map[string]any {
	items := []any{}
	for key, o := range s.objects {
		if namespace == "" || namespace == key.Namespace {
			items = append(items, o)
		}
	}
	return map[string]any{
		"apiVersion": s.resource.APIVersion(), "kind": s.resource.Kind + "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	}
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, namespace string) {
	selects := func(o map[string]any) bool { return namespace == "" || meta(o)["namespace"] == namespace }
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	s.mu.Lock()
	next, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	var first []watchEvent
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, o := range s.objects {
			if selects(o) {
				first = append(first, watchEvent{"ADDED", o})
			}
		}
		next = s.version
		first = append(first, watchEvent{"BOOKMARK", map[string]any{
			"apiVersion": s.resource.APIVersion(), "kind": s.resource.Kind,
			"metadata": map[string]any{
				"resourceVersion": strconv.Itoa(next),
				"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
			},
		}})
	}
	s.mu.Unlock()
	for _, e := range first {
		_ = out.Encode(e)
	}
	_ = flush.Flush()
	for {
		s.mu.Lock()
		more := s.more
		var now []watchEvent
		if !s.held {
			now = s.events[min(next, len(s.events)):]
			next = max(next, len(s.events))
		}
		s.mu.Unlock()
		for _, e := range now {
			if selects(e.Object) && out.Encode(e) != nil {
				return
			}
		}
		_ = flush.Flush()
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func meta(o map[string]any) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

// merge is a JSON merge patch (RFC 7386).
func merge(into, change map[string]any) map[string]any {
	result := maps.Clone(into)
	if result == nil {
		result = map[string]any{}
	}
	for name, value := range change {
		inner, isObject := value.(map[string]any)
		before, wasObject := result[name].(map[string]any)
		switch {
		case value == nil:
			delete(result, name)
		case isObject && wasObject:
			result[name] = merge(before, inner)
		default:
			result[name] = value
		}
	}
	return result
}

func status(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

func refuse(code int, reason metav1.StatusReason, message string) (int, any) {
	return code, status(code, reason, message)
}

// Forbidden is the answer of a server that lacks a rule for who asks.
func Forbidden(what string) *metav1.Status {
	return status(http.StatusForbidden, metav1.StatusReasonForbidden, what+" is forbidden: User \"test\" cannot "+what)
}

// Unavailable is the answer of a server that asks to be tried again after some
// seconds; below zero it asks for nothing.
func Unavailable(seconds int32) *metav1.Status {
	s := status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not now")
	if seconds >= 0 {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	}
	return s
}

func writeStatus(w http.ResponseWriter, s *metav1.Status) {
	if s.Details != nil {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	writeJSON(w, int(s.Code), s)
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// Add stores an object as if a client had.
func (s *Server) Add(o metav1.Object) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if code, answer := s.create(o.GetNamespace(), data); code >= 300 {
		return fmt.Errorf("adding %s: %v", object.KeyOf(o), answer)
	}
	return nil
}

// Get returns an object, or nil.
func (s *Server) Get(key object.Key) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[key]; o != nil {
		return &unstructured.Unstructured{Object: o}
	}
	return nil
}

// UID returns an object's UID, or "".
func (s *Server) UID(key object.Key) types.UID {
	if o := s.Get(key); o != nil {
		return o.GetUID()
	}
	return ""
}
