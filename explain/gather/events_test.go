// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// requests are the paths of requests, and what they accept.
type requests struct {
	http.RoundTripper
	mu  sync.Mutex
	all []string
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.all = append(r.all, request.URL.Path+" "+request.Header.Get("Accept"))
	r.mu.Unlock()
	return r.RoundTripper.RoundTrip(request)
}

// of returns the requests for a plural, in order.
func (r *requests) of(plural string) (some []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if path, _, _ := strings.Cut(one, " "); strings.HasSuffix(path, "/"+plural) {
			some = append(some, one)
		}
	}
	slices.Sort(some)
	return some
}

// observed returns a client whose requests are noted.
func observed(t *testing.T, server *fakeapi.Server) (*client.Client, *requests) {
	t.Helper()
	config := server.Config()
	noted := &requests{RoundTripper: config.Transport}
	config.Transport = noted
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, noted
}

// The Events about an object without a namespace are in two namespaces. Those of all others, of which a large cluster has
// tens of thousands, are not read, and a user needs no right to them.
func TestTheEventsAboutANamespaceAreReadWhereTheyCanBe(t *testing.T) {
	api := fakeapi.New()
	namespaces := object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	if err := api.Serve(namespaces).Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop-1"}}); err != nil {
		t.Fatal(err)
	}
	eventsKind := api.Serve(kind("events", "Event").Resource, fakeapi.WithFields("involvedObject.uid"))
	for namespace, reason := range map[string]string{"default": "First", "kube-system": "Second", "shop": "Third", "other": "Elsewhere"} {
		if err := eventsKind.Put(&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e"}, Reason: reason, Type: "Normal", LastTimestamp: metav1.NewTime(noon),
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: "shop-1"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	c, noted := observed(t, api)
	g := gather.Gatherer{Client: c, Record: gather.None("not needed")}
	reasons := func() (all []string, unread string) {
		facts, err := g.Facts(t.Context(), namespaces, object.Key{Name: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range facts.Events {
			all = append(all, e.Reason)
		}
		slices.Sort(all)
		return all, strings.Join(facts.Unread, "; ")
	}
	if all, unread := reasons(); !slices.Equal(all, []string{"First", "Second", "Third"}) || unread != "" {
		t.Errorf("the Events are %q, not read is %q", all, unread)
	}
	if all := noted.of("events"); len(all) != 3 || !strings.Contains(all[0], "/namespaces/default/") || !strings.Contains(all[2], "/namespaces/shop/") {
		t.Errorf("the requests for Events are %q, want those of three namespaces", all)
	}
	eventsKind.Before(func(r *fakeapi.Request) *metav1.Status {
		if r.Key.Namespace != "kube-system" {
			return nil
		}
		return fakeapi.Forbidden("events")
	})
	if all, unread := reasons(); !slices.Equal(all, []string{"First", "Third"}) || !strings.Contains(unread, "Events: ") {
		t.Errorf("of a user who may not read one namespace the Events are %q, not read is %q", all, unread)
	}
}

// To find a similar name, the names are read without the objects.
func TestNamesAreReadWithoutTheObjects(t *testing.T) {
	api := fakeapi.New()
	if err := api.Serve(kind("pods", "Pod").Resource).Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}); err != nil {
		t.Fatal(err)
	}
	c, noted := observed(t, api)
	names, err := gather.Gatherer{Client: c}.Names(t.Context(), kind("pods", "Pod").Resource, "shop", 5)
	if err != nil || !slices.Equal(names, []string{"web-1"}) {
		t.Errorf("the names are %q, %v", names, err)
	}
	if all := noted.of("pods"); len(all) != 1 || !strings.Contains(all[0], "as=PartialObjectMetadataList") {
		t.Errorf("the requests are %q, want one for the metadata alone", all)
	}
}
