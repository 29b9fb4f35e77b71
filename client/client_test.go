// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var pods = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

func start(t *testing.T) (*fakeapi.Resource, *client.Client) {
	t.Helper()
	s := fakeapi.New().Listen().Serve(pods)
	t.Cleanup(s.Close)
	return s, newClient(t, s.Config())
}

func newClient(t *testing.T, config *rest.Config) *client.Client {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// recorder keeps what it is told, in order. The tests write one at a time.
type recorder []client.Write

func (r *recorder) Record(w client.Write) { *r = append(*r, w) }

func (r *recorder) one(t *testing.T) client.Write {
	t.Helper()
	if len(*r) != 1 {
		t.Fatalf("%d writes were recorded: %+v", len(*r), *r)
	}
	w := (*r)[0]
	*r = nil
	return w
}

func TestEveryWriteIsRecordedWithWhatItMade(t *testing.T) {
	_, c := start(t)
	var r recorder
	ctx := client.WithRecorder(t.Context(), &r)
	view := client.For[*corev1.Pod](c)
	key := object.Key{Namespace: "ns", Name: "a"}

	made, err := view.Create(ctx, pod("a"))
	if err != nil {
		t.Fatal(err)
	}
	if w := r.one(t); w.Verb != "create" || w.Key != key || w.UID != made.UID || string(w.Version) != made.ResourceVersion || w.Unknown {
		t.Errorf("create: %+v", w)
	}

	changed := made.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	changed, err = view.Update(ctx, changed)
	if err != nil {
		t.Fatal(err)
	}
	if w := r.one(t); w.Verb != "update" || string(w.Version) != changed.ResourceVersion {
		t.Errorf("update: %+v", w)
	}

	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"c": "d"}}})
	if err != nil {
		t.Fatal(err)
	}
	patched, err := view.Patch(ctx, key, patch)
	if err != nil || patched.Labels["a"] != "b" || patched.Labels["c"] != "d" {
		t.Fatalf("patch: %v, %v", patched, err)
	}
	if w := r.one(t); w.Verb != "patch" || string(w.Version) != patched.ResourceVersion {
		t.Errorf("patch: %+v", w)
	}

	if err := view.Delete(ctx, key, client.IfUID("another")); !apierrors.IsConflict(err) {
		t.Errorf("delete of another UID: %v", err)
	}
	if len(r) != 0 {
		t.Errorf("a refused write was recorded: %+v", r)
	}
	if err := view.Delete(ctx, key, client.IfUID(made.UID)); err != nil {
		t.Fatal(err)
	}
	if w := r.one(t); w.Verb != "delete" || w.UID != made.UID || w.Key != key {
		t.Errorf("delete: %+v", w)
	}
}

func TestLostAnswerLeavesTheWriteUnknown(t *testing.T) {
	s, c := start(t)
	s.LoseAnswer(func(q *fakeapi.Request) bool { return q.Verb == "create" })
	var r recorder
	_, err := client.For[*corev1.Pod](c).Create(client.WithRecorder(t.Context(), &r), pod("a"))
	if err == nil || !client.Unanswered(err) {
		t.Fatalf("err = %v, want one that is unanswered", err)
	}
	if w := r.one(t); !w.Unknown || w.Verb != "create" || w.Key.Name != "a" {
		t.Errorf("recorded %+v", w)
	}
	if strings.Join(s.Keys(), " ") != "ns/a" {
		t.Errorf("the server has %v", s.Keys())
	}
}

func TestServerThatCannotBeReachedLeavesNothingOpen(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var r recorder
	_, err = client.For[*corev1.Pod](newClient(t, &rest.Config{Host: "http://" + address})).
		Create(client.WithRecorder(t.Context(), &r), pod("a"))
	if err == nil || client.Unanswered(err) || !client.Unreachable(err) || len(r) != 0 {
		t.Errorf("err = %v, recorded %+v", err, r)
	}
	if !strings.Contains(err.Error(), "create") && !strings.Contains(err.Error(), "post pods in namespace ns") {
		t.Errorf("%v does not say what was asked for", err)
	}
}

func TestErrorsAreTheServersOwn(t *testing.T) {
	_, c := start(t)
	view := client.For[*corev1.Pod](c)
	if _, err := view.Get(t.Context(), object.Key{Namespace: "ns", Name: "none"}); !apierrors.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
	if _, err := view.Create(t.Context(), pod("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := view.Create(t.Context(), pod("a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
	old := pod("a")
	old.ResourceVersion = "0815"
	if _, err := view.Update(t.Context(), old); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
}

func TestAnswerThatIsNoStatusIsAnErrorWithItsTextCut(t *testing.T) {
	page := strings.Repeat("<html>", 1000) // as a gateway sends it, and no API server
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte(page))
	}))
	defer s.Close()
	_, err := client.For[*corev1.Pod](newClient(t, &rest.Config{Host: s.URL})).Get(t.Context(), object.Key{Namespace: "ns", Name: "a"})
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) || answered.Status().Code != http.StatusBadGateway {
		t.Fatalf("err = %v", err)
	}
	if len(err.Error()) > 2048 {
		t.Errorf("the error is %d bytes long", len(err.Error()))
	}
}

func TestServerThatIsNoAPIServerIsSaid(t *testing.T) {
	// Raw HTTP: a web server.
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("hello"))
	}))
	defer s.Close()
	_, err := client.For[*corev1.Pod](newClient(t, &rest.Config{Host: s.URL})).Get(t.Context(), object.Key{Namespace: "ns", Name: "a"})
	if err == nil || !strings.Contains(err.Error(), "a Kubernetes API server?") {
		t.Errorf("err = %v", err)
	}
}

func TestRetryAfterIsHonouredAndBounded(t *testing.T) {
	s, c := start(t)
	if err := s.Add(pod("a")); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	refuse := int64(3)
	s.Before(func(*fakeapi.Request) *metav1.Status {
		if asked.Add(1) <= refuse {
			return fakeapi.Unavailable(0)
		}
		return nil
	})
	view := client.For[*corev1.Pod](c)
	if _, err := view.Get(t.Context(), object.Key{Namespace: "ns", Name: "a"}); err != nil || asked.Load() != 4 {
		t.Errorf("err = %v after %d tries", err, asked.Load())
	}
	asked.Store(0)
	refuse = 1000
	if _, err := view.Get(t.Context(), object.Key{Namespace: "ns", Name: "a"}); !apierrors.IsServiceUnavailable(err) || asked.Load() != 11 {
		t.Errorf("err = %v after %d tries, want to give up after 11", err, asked.Load())
	}
	asked.Store(0)
	s.Before(func(*fakeapi.Request) *metav1.Status { asked.Add(1); return fakeapi.Unavailable(-1) })
	if _, err := view.Get(t.Context(), object.Key{Namespace: "ns", Name: "a"}); err == nil || asked.Load() != 1 {
		t.Errorf("without Retry-After: err = %v after %d tries", err, asked.Load())
	}
}

func TestWaitForRetryEndsWithTheContext(t *testing.T) {
	s, c := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Before(func(*fakeapi.Request) *metav1.Status { cancel(); return fakeapi.Unavailable(3600) })
	if _, err := client.For[*corev1.Pod](c).Get(ctx, object.Key{Namespace: "ns", Name: "a"}); err == nil {
		t.Error("no error")
	}
}

func TestNamesThatWouldChangeThePathAreRefused(t *testing.T) {
	s, c := start(t)
	s.Before(func(q *fakeapi.Request) *metav1.Status {
		t.Errorf("%s %s was sent", q.Verb, q.HTTP.URL.Path)
		return nil
	})
	for _, name := range []string{"", ".", "..", "a/b", "../secrets/x", "a%2fb"} {
		if _, err := client.For[*corev1.Pod](c).Get(t.Context(), object.Key{Namespace: "ns", Name: name}); err == nil {
			t.Errorf("name %q was not refused", name)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	// Raw HTTP: an API server does not redirect.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a token was carried to another server: %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	_, err := client.For[*corev1.Pod](newClient(t, &rest.Config{Host: s.URL, BearerToken: "secret"})).
		Get(t.Context(), object.Key{Namespace: "ns", Name: "a"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("err = %v", err)
	}
}

func TestListReadsASelection(t *testing.T) {
	s, c := start(t)
	for _, name := range []string{"a", "b"} {
		if err := s.Add(pod(name)); err != nil {
			t.Fatal(err)
		}
	}
	list, version, err := client.For[*corev1.Pod](c).List(t.Context(), client.Selection{Namespace: "ns"})
	if err != nil || len(list) != 2 || string(version) != s.ResourceVersion() {
		t.Errorf("%d objects at %q, %v", len(list), version, err)
	}
}

func TestUnstructuredObjectsAreReadAndWrittenByResource(t *testing.T) {
	widgets := object.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}
	s := fakeapi.New().Listen().Serve(widgets)
	defer s.Close()
	view := client.ForResource[*unstructured.Unstructured](newClient(t, s.Config()), widgets)
	w := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "w"}, "spec": map[string]any{"size": int64(3)}}}
	made, err := view.Create(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if made.GetKind() != "Widget" || made.GetAPIVersion() != "example.com/v1" || w.GetKind() != "" {
		t.Errorf("made %v; what was given became %v", made, w)
	}
	if size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size"); size != 3 {
		t.Errorf("spec is %v", made.Object["spec"])
	}
}

func TestTypeInNoSchemeIsSaidWithWhatToDo(t *testing.T) {
	_, c := start(t)
	_, err := client.For[*unstructured.Unstructured](c).Get(t.Context(), object.Key{Name: "x"})
	if err == nil || !strings.Contains(err.Error(), "WithScheme") {
		t.Errorf("err = %v", err)
	}
}

func TestMalformedAddressIsRefused(t *testing.T) {
	if _, err := client.New(&rest.Config{Host: "http://[::1"}); err == nil {
		t.Error("no error")
	}
	if _, err := client.New(nil); err == nil {
		t.Error("no error for no configuration")
	}
}

func TestOfMetadataTheServerSendsNoMore(t *testing.T) {
	s, c := start(t)
	if err := s.Add(pod("web")); err != nil {
		t.Fatal(err)
	}
	o, err := client.ForResource[*metav1.PartialObjectMetadata](c, pods).Get(t.Context(), object.Key{Namespace: "ns", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	accept := s.Requests()[0].HTTP.Header.Get("Accept")
	if want := ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"; o.UID != s.UID(object.KeyOf(o)) || strings.Count(accept, want) != 2 {
		t.Errorf("asked for %q and read %v, want %s in protobuf and in JSON", accept, o, want)
	}
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAClientSendsItsRequestsByTheTransportThatItIsGiven(t *testing.T) {
	refused := errors.New("refused")
	var got string
	c, err := client.New(&rest.Config{Host: "https://example.invalid"}, client.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.URL.String()
		return nil, refused
	})))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Request(http.MethodGet).Path("/version").Do(t.Context())
	if !errors.Is(err, refused) || got != "https://example.invalid/version" {
		t.Errorf("got %v, and a request for %q", err, got)
	}
}
