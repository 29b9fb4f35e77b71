// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func kubernetes(t *testing.T, c *client.Client) sink.Sink {
	t.Helper()
	s, err := sink.New("events", sink.Options{KubernetesEvents: &sink.KubernetesEvents{}}, sink.Deps{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a real server takes, and shows with the object.
func TestEventsAreWrittenToARealServer(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	s := kubernetes(t, cluster.Client)
	in := func(n int, name string) *event.Event {
		e := made(n)
		e.Key = object.Key{Namespace: namespace, Name: name}
		return e
	}
	long := in(2, strings.Repeat("a", 250)+".b")
	long.Fields = []event.Field{{Path: strings.Repeat("é", 2000), Op: event.Add, To: "x", Class: event.Content}}
	long.Verb = event.Updated
	node := made(3)
	node.Kind = event.Kind{Version: "v1", Kind: "Node", Resource: "nodes"}
	node.Key = object.Key{Name: "node-1"}
	role := in(4, "system:Admin")
	role.Kind = event.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role", Resource: "roles", Namespaced: true}
	ofEvent := in(5, "x")
	ofEvent.Kind = event.Kind{Group: "events.k8s.io", Version: "v1", Kind: "Event", Resource: "events", Namespaced: true}
	gone := in(6, "x")
	gone.Key.Namespace = "gone"
	all := []*event.Event{in(1, "web"), long, node, role, ofEvent, gone}
	for range 2 { // what is sent twice is there once
		r := s.Send(t.Context(), all)
		if r.Done != 6 || r.Err != nil || len(r.Refused) != 2 || r.Refused[0].Index != 4 || r.Refused[1].Index != 5 {
			t.Fatalf("%+v", r)
		}
	}
	if err := sink.SendTest(t.Context(), s); err != nil {
		t.Error(err)
	}
	names := map[string]*eventsv1.Event{}
	for _, ns := range []string{namespace, metav1.NamespaceDefault} {
		var list eventsv1.EventList
		answer, err := cluster.Client.Request(http.MethodGet).Path("/apis/events.k8s.io/v1/namespaces/" + ns + "/events").Accept("application/json").Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer.Body, &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].ReportingController == "setpoint.io/watch" {
				names[list.Items[i].Regarding.Name] = &list.Items[i]
			}
		}
	}
	if len(names) != 5 {
		t.Errorf("there are %d Events", len(names))
	}
	e := names["web"]
	if e == nil || e.Regarding.UID != "u" || e.Regarding.APIVersion != "v1" || e.Reason != "Created" || e.Type != corev1.EventTypeNormal ||
		e.ReportingController != "setpoint.io/watch" || e.ReportingInstance != "setpoint-watch" || e.Note == "" {
		t.Errorf("%+v", e)
	}
	if n := names["node-1"]; n == nil || n.Namespace != "default" {
		t.Errorf("%+v", n)
	}
}

func TestWhatAnswersOfTheServerMean(t *testing.T) {
	terminating := fakeapi.Forbidden("create events")
	terminating.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	noKind := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}
	gone := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: `namespaces "team-a" not found`,
		Details: &metav1.StatusDetails{Kind: "namespaces", Name: "team-a"}}
	invalid := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "no"}
	for name, c := range map[string]struct {
		status  *metav1.Status
		refused bool
	}{
		"a right that is missing":     {status: fakeapi.Forbidden("create events")},
		"a namespace that is leaving": {status: terminating, refused: true},
		"a namespace that is gone":    {status: gone, refused: true},
		"a server without the kind":   {status: noKind},
		"what is not valid":           {status: invalid, refused: true},
		"a server in trouble":         {status: fakeapi.Unavailable(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New().Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
			server.Before(func(*fakeapi.Request) *metav1.Status { return c.status })
			connected, err := client.New(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			e := made(1)
			e.Time = time.Unix(0, 0)
			r := kubernetes(t, connected).Send(t.Context(), []*event.Event{e})
			if c.refused && (len(r.Refused) != 1 || r.Err != nil) || !c.refused && (r.Done != 0 || r.Err == nil) {
				t.Errorf("%+v", r)
			}
		})
	}
	if _, err := sink.New("events", sink.Options{KubernetesEvents: &sink.KubernetesEvents{}}, sink.Deps{}); err == nil {
		t.Error("there was no client")
	}
}
