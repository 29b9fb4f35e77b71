// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// script is a server that keeps the last request and gives one answer to all. It is a raw
// server: fakeapi lacks most subresources, and the tests compare requests as they were sent.
type script struct {
	code       int
	answer     string
	retryAfter string
	drop       bool // the connection, after the request has been read

	asked  int
	line   string // method, path and query of the last request
	body   string
	header http.Header
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	s.asked++
	s.line, s.body, s.header = r.Method+" "+r.URL.RequestURI(), string(raw), r.Header
	if s.drop {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if s.retryAfter != "" {
		w.Header().Set("Retry-After", s.retryAfter)
	}
	w.WriteHeader(max(s.code, http.StatusOK))
	_, _ = io.WriteString(w, s.answer)
}

// play starts a script. Its clients speak JSON, so that bodies can be compared.
func play(t *testing.T, s *script) *client.Client {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.ContentType = "application/json"
	return newClient(t, config)
}

const (
	success = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`
	scaled  = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"namespace":"ns","name":"a","uid":"u-1","resourceVersion":"12"},"spec":{"replicas":3}}`
)

var (
	websites = object.Resource{Group: "example.com", Version: "v1", Plural: "websites", Kind: "Website", Namespaced: true}
	inNS     = object.Key{Namespace: "ns", Name: "a"}
)

// The name of the object stands in the path, whatever the body is, and the body names its
// own kind. What is recorded is what happens to the object.
func TestASubresourceIsOneOfTheObjectInThePath(t *testing.T) {
	for _, c := range []struct {
		name   string
		call   func(ctx context.Context, c *client.Client) error
		answer string
		line   string
		body   string // JSON
		want   *client.Write
	}{
		{
			name: "reading a scale",
			call: func(ctx context.Context, c *client.Client) error {
				scale, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale").Get(ctx, inNS)
				if err == nil && (scale.Spec.Replicas != 3 || scale.ResourceVersion != "12") {
					return fmt.Errorf("read %+v", scale)
				}
				return err
			},
			answer: scaled, line: "GET /apis/apps/v1/namespaces/ns/deployments/a/scale",
		},
		{
			name: "updating a scale",
			call: func(ctx context.Context, c *client.Client) error {
				_, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale").
					Update(ctx, inNS, &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}})
				return err
			},
			answer: scaled, line: "PUT /apis/apps/v1/namespaces/ns/deployments/a/scale",
			body: `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"ns"},"spec":{"replicas":3},"status":{"replicas":0}}`,
			want: &client.Write{Verb: "update", Key: inNS, UID: "u-1", Version: "12"},
		},
		{
			name: "an update of a scale that changes nothing",
			call: func(ctx context.Context, c *client.Client) error {
				_, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale").
					Update(ctx, inNS, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "12"}})
				return err
			},
			answer: scaled, line: "PUT /apis/apps/v1/namespaces/ns/deployments/a/scale",
			want: &client.Write{Verb: "update", Key: inNS, UID: "u-1"},
		},
		{
			name: "patching the scale of a custom kind",
			call: func(ctx context.Context, c *client.Client) error {
				view := client.ForResource[*unstructured.Unstructured](c, websites).With(client.FieldManager("me"))
				_, err := client.Sub[*autoscalingv1.Scale](view, "scale").
					Patch(ctx, inNS, client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"replicas":3}}`)})
				return err
			},
			answer: scaled, line: "PATCH /apis/example.com/v1/namespaces/ns/websites/a/scale?fieldManager=me",
			body: `{"spec":{"replicas":3}}`,
			want: &client.Write{Verb: "patch", Key: inNS, UID: "u-1", Version: "12"},
		},
		{
			name: "an eviction",
			call: func(ctx context.Context, c *client.Client) error {
				uid := types.UID("u-1")
				sent, err := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](c), "eviction").Create(ctx, inNS,
					&policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}})
				if err == nil && sent.Name != "a" {
					return fmt.Errorf("returned %v", sent)
				}
				return err
			},
			answer: success, line: "POST /api/v1/namespaces/ns/pods/a/eviction",
			body: `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a","namespace":"ns"},"deleteOptions":{"preconditions":{"uid":"u-1"}}}`,
			want: &client.Write{Verb: "delete", Key: inNS, UID: "u-1"},
		},
		{
			name: "an eviction of whatever has the name",
			call: func(ctx context.Context, c *client.Client) error {
				_, err := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](c), "eviction").Create(ctx, inNS, &policyv1.Eviction{})
				return err
			},
			answer: success, line: "POST /api/v1/namespaces/ns/pods/a/eviction",
			want: &client.Write{Verb: "delete", Key: inNS},
		},
		{
			name: "a dry run of an eviction, by an option",
			call: func(ctx context.Context, c *client.Client) error {
				_, err := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](c), "eviction").
					Create(ctx, inNS, &policyv1.Eviction{}, client.DryRun())
				return err
			},
			answer: success, line: "POST /api/v1/namespaces/ns/pods/a/eviction?dryRun=All",
		},
		{
			name: "a dry run of an eviction, in its body",
			call: func(ctx context.Context, c *client.Client) error {
				_, err := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](c), "eviction").
					Create(ctx, inNS, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
				return err
			},
			answer: success, line: "POST /api/v1/namespaces/ns/pods/a/eviction?dryRun=All",
		},
		{
			name: "a token, which changes no object",
			call: func(ctx context.Context, c *client.Client) error {
				granted, err := client.Sub[*authenticationv1.TokenRequest](client.For[*corev1.ServiceAccount](c), "token").
					Create(ctx, inNS, &authenticationv1.TokenRequest{})
				if err == nil && granted.Status.Token != "secret" {
					return fmt.Errorf("granted %v", granted)
				}
				return err
			},
			answer: `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{"name":"a","namespace":"ns"},"status":{"token":"secret"}}`,
			line:   "POST /api/v1/namespaces/ns/serviceaccounts/a/token",
		},
		{
			name: "a binding, whose answer does not say what it made",
			call: func(ctx context.Context, c *client.Client) error {
				_, err := client.Sub[*corev1.Binding](client.For[*corev1.Pod](c), "binding").
					Create(ctx, inNS, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}})
				return err
			},
			answer: success, line: "POST /api/v1/namespaces/ns/pods/a/binding",
			body: `{"kind":"Binding","apiVersion":"v1","metadata":{"name":"a","namespace":"ns"},"target":{"kind":"Node","name":"n"}}`,
			want: &client.Write{Verb: "update", Key: inNS, Unknown: true},
		},
		{
			name: "an approval, whose object is of the kind itself",
			call: func(ctx context.Context, c *client.Client) error {
				_, err := client.For[*certificatesv1.CertificateSigningRequest](c).Sub("approval").
					Update(ctx, object.Key{Name: "a"}, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "11"}})
				return err
			},
			answer: `{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","metadata":{"name":"a","uid":"u-1","resourceVersion":"12"}}`,
			line:   "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/a/approval",
			want:   &client.Write{Verb: "update", Key: object.Key{Name: "a"}, UID: "u-1", Version: "12"},
		},
		{
			name: "an answer of an unknown kind without a version",
			call: func(ctx context.Context, c *client.Client) error {
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Restart"}}
				_, err := client.Sub[*unstructured.Unstructured](client.ForResource[*unstructured.Unstructured](c, websites), "restart").Create(ctx, inNS, o)
				return err
			},
			answer: `{"kind":"Restart","apiVersion":"example.com/v1","metadata":{"name":"another"}}`,
			line:   "POST /apis/example.com/v1/namespaces/ns/websites/a/restart",
			body:   `{"kind":"Restart","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"ns"}}`,
			want:   &client.Write{Verb: "update", Key: inNS, Unknown: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{answer: c.answer}
			cl := play(t, s)
			var r recorder
			if err := c.call(client.WithRecorder(t.Context(), &r), cl); err != nil {
				t.Fatal(err)
			}
			if s.line != c.line {
				t.Errorf("asked %s, want %s", s.line, c.line)
			}
			if c.body != "" && !sameJSON(t, s.body, c.body) {
				t.Errorf("sent %s, want %s", s.body, c.body)
			}
			if c.want == nil {
				if len(r) != 0 {
					t.Errorf("%+v is recorded", r)
				}
				return
			}
			got := r.one(t)
			if path, _, _ := strings.Cut(c.line, "?"); !strings.HasSuffix(path, "/"+got.Subresource) || got.Subresource == "" {
				t.Errorf("recorded the subresource %q of %s", got.Subresource, c.line)
			}
			if patched := strings.HasPrefix(c.line, "PATCH"); patched != (got.Patch != nil) {
				t.Errorf("recorded the patch %v of %s", got.Patch, c.line)
			}
			got.Client, got.Resource, got.Object = nil, object.Resource{}, nil
			got.Subresource, got.Manager, got.Before, got.Patch = "", "", "", nil
			if got != *c.want {
				t.Errorf("recorded %+v, want %+v", got, *c.want)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	compact := func(s string) string {
		var v map[string]any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatalf("%v: %s", err, s)
		}
		// Types of other versions of the API write empty fields that these leave out.
		unstructured.RemoveNestedField(v, "metadata", "creationTimestamp")
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	return compact(a) == compact(b)
}

// An eviction that a disruption budget forbids is refused with the time to try again.
func TestARefusedEvictionSaysWhenToTryAgain(t *testing.T) {
	refusal := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,
		"message":"Cannot evict pod as it would violate the pod's disruption budget.","details":{"retryAfterSeconds":7,
		"causes":[{"reason":"DisruptionBudget","message":"The disruption budget a needs 1 healthy pods and has 1 currently"}]}}`
	s := &script{code: http.StatusTooManyRequests, answer: refusal}
	cl := play(t, s)
	var r recorder
	_, err := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](cl), "eviction").
		Create(client.WithRecorder(t.Context(), &r), inNS, &policyv1.Eviction{})
	seconds, says := apierrors.SuggestsClientDelay(err)
	if !apierrors.IsTooManyRequests(err) || !says || seconds != 7 || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("%v, again after %d s (%t)", err, seconds, says)
	}
	if s.asked != 1 || len(r) != 0 || client.Unanswered(err) {
		t.Errorf("asked %d times, recorded %+v", s.asked, r)
	}
}

// As elsewhere, a server that asks in a header to be tried again is.
func TestAnEvictionIsSentAgainWhereTheServerAsksForIt(t *testing.T) {
	s := &script{code: http.StatusTooManyRequests, retryAfter: "0", answer: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`}
	_, err := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](play(t, s)), "eviction").Create(t.Context(), inNS, &policyv1.Eviction{})
	if !apierrors.IsTooManyRequests(err) || s.asked != 11 {
		t.Errorf("asked %d times: %v", s.asked, err)
	}
}

// A lost answer leaves open what became of the object; a token leaves nothing open.
func TestALostAnswerOfASubresource(t *testing.T) {
	for name, c := range map[string]struct {
		call func(ctx context.Context, c *client.Client) error
		verb string
	}{
		"eviction": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](c), "eviction").Create(ctx, inNS, &policyv1.Eviction{})
			return err
		}, "delete"},
		"scale": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale").Update(ctx, inNS, &autoscalingv1.Scale{})
			return err
		}, "update"},
		"token": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*authenticationv1.TokenRequest](client.For[*corev1.ServiceAccount](c), "token").Create(ctx, inNS, &authenticationv1.TokenRequest{})
			return err
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{drop: true}
			var r recorder
			if err := c.call(client.WithRecorder(t.Context(), &r), play(t, s)); !client.Unanswered(err) {
				t.Errorf("%v", err)
			}
			if c.verb == "" {
				if len(r) != 0 {
					t.Errorf("%+v is recorded", r)
				}
				return
			}
			if w := r.one(t); w.Verb != c.verb || !w.Unknown || w.Key != inNS {
				t.Errorf("%+v is recorded", w)
			}
		})
	}
}

// What could only be refused is not sent.
func TestASubresourceThatCannotBeAskedForIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		call func(ctx context.Context, c *client.Client) error
		says string
	}{
		"no name": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale").Get(ctx, object.Key{Namespace: "ns"})
			return err
		}, "get deployments.apps/scale in namespace ns: the name is empty"},
		"no subresource": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "").Get(ctx, inNS)
			return err
		}, "the subresource is empty"},
		"two in one": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale/status").Get(ctx, inNS)
			return err
		}, `subresource "scale/status" cannot stand in a URL`},
		"a body of another object": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale").
				Update(ctx, inNS, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
			return err
		}, "put deployments.apps/scale ns/a: the body is of another object: b"},
		"a type of no kind": {func(ctx context.Context, c *client.Client) error {
			_, err := client.Sub[*strange](client.For[*appsv1.Deployment](c), "scale").Update(ctx, inNS, &strange{})
			return err
		}, "client.WithScheme"},
		"by hand, without a name": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Request(http.MethodPost).Resource(pods).Namespace("ns").Subresource("eviction").Do(ctx)
			return err
		}, "whose name is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{answer: scaled}
			err := c.call(t.Context(), play(t, s))
			if err == nil || !strings.Contains(err.Error(), c.says) || s.asked != 0 {
				t.Errorf("asked %d times: %v", s.asked, err)
			}
		})
	}
}

// strange is an object that no scheme knows.
type strange struct{ corev1.ConfigMap }
