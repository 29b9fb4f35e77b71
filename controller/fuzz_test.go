// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// fuzzedAnswer is what a server answers to whatever it is asked.
type fuzzedAnswer struct {
	code                    uint16
	contentType, retryAfter string
	body                    []byte
}

func (a fuzzedAnswer) response() *http.Response {
	return &http.Response{
		StatusCode: int(a.code), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)),
		Header: http.Header{"Content-Type": {a.contentType}, "Retry-After": {a.retryAfter}},
	}
}

func (a fuzzedAnswer) good() bool { return a.code >= 200 && a.code < 300 }

// text reports whether the body is JSON, which has escapes.
func (a fuzzedAnswer) text() bool {
	media, _, _ := mime.ParseMediaType(a.contentType)
	return !strings.Contains(media, "protobuf")
}

// shows reports whether the answer is, or lists, the object of this key, with its version.
func (a fuzzedAnswer) shows(key object.Key, version object.Version) bool {
	if !a.good() || version.IsZero() {
		return false
	}
	if !a.text() {
		return bytes.Contains(a.body, []byte(key.Name)) && bytes.Contains(a.body, []byte(version))
	}
	var read struct {
		metav1.PartialObjectMetadata `json:",inline"`
		Items                        []metav1.PartialObjectMetadata `json:"items"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(a.body, &read) != nil {
		return false
	}
	return slices.ContainsFunc(append(read.Items, read.PartialObjectMetadata), func(o metav1.PartialObjectMetadata) bool {
		return object.KeyOf(&o) == key && o.ResourceVersion == string(version)
	})
}

// status returns the Status in the body, or an empty one. It has a code of its own.
func (a fuzzedAnswer) status() metav1.Status {
	var status metav1.Status
	var err error
	if a.text() {
		err = kjson.UnmarshalCaseSensitivePreserveInts(a.body, &status)
	} else if message := (runtime.Unknown{}); len(a.body) > 4 {
		if err = message.Unmarshal(a.body[4:]); err == nil { // after the four bytes that say that it is protobuf
			err = status.Unmarshal(message.Raw)
		}
	}
	if err != nil {
		status = metav1.Status{}
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	return status
}

// denies reports whether the answer says that there is no object of this name.
func (a fuzzedAnswer) denies(name string) bool {
	status := a.status()
	return (a.code == http.StatusNotFound || status.Code == http.StatusNotFound || status.Reason == metav1.StatusReasonNotFound) && status.Details.Name == name
}

// forbids reports whether the answer says that the credentials lack a right.
func (a fuzzedAnswer) forbids() bool {
	status := a.status()
	return a.code == http.StatusForbidden || status.Code == http.StatusForbidden || status.Reason == metav1.StatusReasonForbidden
}

// lists reports whether the answer is a list as of some version.
func (a fuzzedAnswer) lists() bool {
	if !a.text() {
		return a.good() && bytes.HasPrefix(a.body, []byte("k8s\x00"))
	}
	var list metav1.List
	return a.good() && kjson.UnmarshalCaseSensitivePreserveInts(a.body, &list) == nil && list.ResourceVersion != "" && list.ResourceVersion != "0"
}

func addAnswers(f *testing.F) {
	f.Helper()
	const text, binary = "application/json", "application/vnd.kubernetes.protobuf"
	for _, a := range []fuzzedAnswer{
		{200, text, "", []byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"child","namespace":"ns","uid":"u","resourceVersion":"1000"}}`)},
		{200, text, "", []byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"child","namespace":"ns","uid":"u"}}`)},
		{200, text, "", []byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"child","namespace":"ns","resourceVersion":"-1"}}`)},
		{200, text, "", []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"other","namespace":"ns","resourceVersion":"2"}}`)},
		{200, text, "", []byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"3"},"items":[{"metadata":{"name":"child","namespace":"ns","uid":"u","resourceVersion":"2"}}]}`)},
		{200, text, "", []byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"3"},"items":[]}`)},
		{200, text, "", []byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":null}`)},
		{200, text, "", []byte(`{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"3"},"status":"Success"}`)},
		{200, text, "", []byte(`{}`)},
		{200, text, "", []byte(`null`)},
		{200, binary, "", []byte("k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12\x00")},
		{204, "", "", nil},
		{200, "text/html", "", []byte("<html>")},
		{404, text, "", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"child","kind":"pods"}}`)},
		{404, text, "", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"ns","kind":"namespaces"}}`)},
		{404, "text/plain", "", []byte("404 page not found")},
		{403, text, "", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)},
		{409, text, "1", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)},
		{410, text, "", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)},
		{422, text, "", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"details":{"causes":[{}]}}`)},
		{429, text, "0", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"details":{"retryAfterSeconds":-1}}`)},
		{503, text, "99999999999999999999", nil},
		{302, "", "1", nil},
	} {
		f.Add(a.code, a.contentType, a.retryAfter, a.body)
	}
}

// A look-up ends with an error, or with what the answer says: that the object is there, in a
// version, or that this object is not there. Nothing else says what became of a write.
func FuzzAnswersToALookUp(f *testing.F) {
	addAnswers(f)
	server := fakeapi.New().Serve(podsResource)
	if err := server.Add(pod("parent")); err != nil {
		f.Fatal(err)
	}
	honest, err := client.New(server.Config())
	if err != nil {
		f.Fatal(err)
	}
	factory := cache.NewFactory(honest, nil)
	informer := cache.Informer[*corev1.Pod](factory)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- factory.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("the factory: %v", err)
		}
	})
	if err := informer.WaitForSync(ctx); err != nil {
		f.Fatal(err)
	}
	child, collection := key("child"), object.Key{Namespace: "ns"}
	f.Fuzz(func(t *testing.T, code uint16, contentType, retryAfter string, body []byte) {
		if code < 100 || code > 999 {
			return // net/http lets nothing else through
		}
		a := fuzzedAnswer{code, contentType, retryAfter, body}
		// ask has one server answer all requests, or with forbidden only those that list.
		ask := func(forbidden bool, do func(context.Context, client.Write)) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: &between{answer: func(r *http.Request) *http.Response {
				if forbidden && getsOne(r) {
					return says(http.StatusForbidden, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
				}
				if code == http.StatusTooManyRequests || code >= 500 {
					cancel() // nobody waits for a Retry-After here
				}
				return a.response()
			}}})
			if err != nil {
				t.Fatal(err)
			}
			do(ctx, client.Write{Client: c, Resource: podsResource, Key: child, Verb: "create", Unknown: true})
		}
		for _, forbidden := range []bool{false, true} {
			ask(forbidden, func(ctx context.Context, w client.Write) {
				now, err := controller.Ask(ctx, informer.Handle(), w)
				switch {
				case err != nil:
				case len(now) != 1 || now[0].Key != child || now[0].Unknown:
					t.Errorf("the create became %+v", now)
				case now[0].Verb == "delete":
					// The informer's own client lists where this one may not.
					if listed := (forbidden && a.lists() || a.forbids()) && !a.shows(child, "0"); !listed && (forbidden || !a.denies(child.Name)) {
						t.Errorf("it is believed that there is no such object (get forbidden: %v)", forbidden)
					}
				case !a.shows(child, now[0].Version):
					t.Errorf("it is believed that there is one of version %q (get forbidden: %v)", now[0].Version, forbidden)
				}
			})
		}
		for _, verb := range []string{"create", "deletecollection"} {
			ask(false, func(ctx context.Context, w client.Write) {
				w.Key, w.Verb = collection, verb
				now, err := controller.Ask(ctx, informer.Handle(), w)
				if err == nil && !a.lists() && !a.forbids() {
					t.Errorf("the %s became %+v", verb, now)
				}
			})
		}
		ask(false, func(ctx context.Context, w client.Write) {
			w.Unknown, w.Version = false, "100000"
			if controller.NeedNot(ctx, informer.Handle(), w) && !a.denies(child.Name) && !a.forbids() {
				t.Error("the write is believed to be lost")
			}
		})
	})
}

// Whatever a server answers to a controller's own requests, nothing panics, the key runs again
// within the bound, and once the server tells the truth nothing is waited for.
func FuzzAnswersToAController(f *testing.F) {
	addAnswers(f)
	f.Fuzz(func(t *testing.T, code uint16, contentType, retryAfter string, body []byte) {
		if code < 100 || code > 999 {
			return // net/http lets nothing else through
		}
		a := fuzzedAnswer{code, contentType, retryAfter, body}
		inBubble(t, func(t *testing.T, b *bubble) {
			honest := false
			fuzzed := func(writes bool) *client.Client {
				c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: &between{next: b.line, answer: func(r *http.Request) *http.Response {
					b.line.mu.Lock()
					defer b.line.mu.Unlock()
					if honest || !writes && r.Method != http.MethodGet {
						return nil
					}
					return a.response()
				}}})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			asked, writer := fuzzed(true), fuzzed(false)
			orphan := pod("orphan")
			orphan.Labels = map[string]string{"app": "web"}
			if err := b.line.to().Add(orphan); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			recorder := events.NewRecorder(asked, "fuzz", "one", slog.New(slog.DiscardHandler))
			recording, stopRecording := context.WithCancel(t.Context())
			recorded := make(chan struct{})
			go func() { defer close(recorded); recorder.Run(recording, time.Minute) }()
			saw := false
			w := b.writing(func(ctx context.Context, _ client.Typed[*corev1.Pod]) error {
				b.loseCreate()
				_, err := client.For[*corev1.Pod](writer).Create(ctx, pod("child"))
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				requests(ctx, t, a, asked, b.writtenBy(asked))
				for range 2 {
					recorder.Normal(orphan, "Fuzzed", "Fuzz", "an answer of %d", code)
				}
				return err
			}, func() { saw = names(b.pods)["child"] })
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			if len(w.runs) < 2 {
				t.Errorf("%d runs in 20 minutes, waiting for %v", len(w.runs), w.Waiting())
			}
			b.line.mu.Lock()
			honest = true
			b.line.mu.Unlock()
			b.line.to().HoldWatches(false)
			synctest.Wait()
			w.Queue().Add(key("parent"))
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			if !saw || len(w.Waiting()) != 0 {
				t.Errorf("the write was seen: %v; waiting for %v", saw, w.Waiting())
			}
			w.stop()
			stopRecording()
			<-recorded
		})
	})
}

// requests sends what the helpers of a reconcile send, to a server that gives one answer.
func requests(ctx context.Context, t *testing.T, a fuzzedAnswer, c *client.Client, pods cache.SharedInformer[*corev1.Pod]) {
	t.Helper()
	owner := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine"}}
	claim := owned.Claim[*corev1.Pod]{
		Server: pods.Server(), Owner: owner, Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
		Live: func(ctx context.Context) (object.Object, error) {
			return client.For[*appsv1.ReplicaSet](c).Get(ctx, object.KeyOf(owner))
		},
	}
	if claimed, err := claim.Of(ctx, pods.Snapshot().Namespace("ns")); len(claimed) > 0 && !a.good() {
		t.Errorf("after %d, Claim has adopted %d (%v)", a.code, len(claimed), err)
	}
	claim.Live = func(context.Context) (object.Object, error) { return owner, nil }
	if claimed, err := claim.Of(ctx, pods.Snapshot().Namespace("ns")); len(claimed) > 0 && !a.good() {
		t.Errorf("after %d, Claim has adopted %d (%v)", a.code, len(claimed), err)
	}
	if _, err := owned.NewApplier(pods, "fuzz").Apply(ctx, owner, pod("child")); err == nil && !a.good() {
		t.Errorf("after %d, Apply has no error", a.code)
	}
	held := pod("parent")
	held.Finalizers = []string{"example.com/f"}
	view := client.For[*corev1.Pod](c)
	if _, err := finalizer.Add(ctx, view, held, "example.com/g"); err == nil && !a.good() {
		t.Errorf("after %d, finalizer.Add has no error", a.code)
	}
	if err := finalizer.Remove(ctx, view, held, "example.com/f"); err == nil && !a.good() && !a.denies("parent") {
		t.Errorf("after %d, finalizer.Remove has no error", a.code)
	}
}
