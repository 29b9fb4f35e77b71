// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/managedfields"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// kind is a kind that a fake server serves.
func kind(plural, name string) client.Served {
	return client.Served{Resource: object.Resource{Version: "v1", Plural: plural, Kind: name, Namespaced: true}, Verbs: []string{"list", "watch"}}
}

// What changed in a namespace comes from the record, from the metadata of its objects and from its Events. Objects that
// nobody has changed in the time are left out, and values of Secrets are never read.
//
// Servers have metadata and Events in protobuf. One that has only JSON gives the same facts.
func TestTheFactsOfANamespace(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) { theFactsOfANamespace(t, false) })
	t.Run("JSON", func(t *testing.T) { theFactsOfANamespace(t, true) })
}

// onlyJSON takes protobuf out of what requests accept.
type onlyJSON struct{ http.RoundTripper }

func (o onlyJSON) RoundTrip(r *http.Request) (*http.Response, error) {
	accepts := slices.DeleteFunc(strings.Split(r.Header.Get("Accept"), ","), func(one string) bool { return strings.Contains(one, "protobuf") })
	r = r.Clone(r.Context())
	r.Header.Set("Accept", strings.Join(accepts, ","))
	return o.RoundTripper.RoundTrip(r)
}

func theFactsOfANamespace(t *testing.T, jsonAlone bool) {
	api := fakeapi.New()
	secrets, pods, eventsKind, leases := kind("secrets", "Secret"), kind("pods", "Pod"), kind("events", "Event"), kind("leases", "Lease")
	server := api.Serve(secrets.Resource)
	changed := func(at time.Time) []metav1.ManagedFieldsEntry {
		when := metav1.NewTime(at)
		return []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, Time: &when, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
	}
	for name, at := range map[string]time.Time{"new": noon, "old": noon.Add(-time.Hour)} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ManagedFields: changed(at)}, Data: map[string][]byte{"password": []byte("hidden")}}
		if err := server.Put(secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.Serve(eventsKind.Resource).Put(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e", CreationTimestamp: metav1.NewTime(noon)}, Reason: "BackOff", Message: "restarts", Type: "Warning", LastTimestamp: metav1.NewTime(noon),
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, ReportingController: "someone",
	}); err != nil {
		t.Fatal(err)
	}
	api.Serve(pods.Resource).Before(func(*fakeapi.Request) *metav1.Status {
		return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	})
	config := server.Config()
	if jsonAlone {
		config.Transport = onlyJSON{config.Transport}
	}
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	unwatched := leases
	unwatched.Verbs = []string{"list"} // figures that are computed for each list
	g := gather.Gatherer{Client: c, Record: gather.Local(recordOfWeb(t))}
	facts := g.Changed(t.Context(), []client.Served{secrets, pods, eventsKind, unwatched}, "shop", noon.Add(-time.Minute))
	if len(facts.Objects) != 1 || facts.Objects[0].Object.Name != "new" || facts.Objects[0].State["data"] != nil {
		t.Errorf("the objects are %+v, want the metadata of the Secret that was changed", facts.Objects)
	} else if all := managedfields.Of(facts.Objects[0].State); len(all) != 1 || all[0].Manager != "kubectl-edit" || !all[0].Time.Equal(noon) || !all[0].Owns("data") {
		t.Errorf("its field managers are %+v, want the one of the change", all)
	}
	if len(facts.Runs) != 1 || !facts.Recorded {
		t.Errorf("the runs are %+v, want the one that wrote", facts.Runs)
	}
	if len(facts.Events) != 1 || facts.Events[0].About.String() != "Deployment.apps shop/web" || facts.Events[0].Source != "someone" || !facts.Events[0].Last.Equal(noon) {
		t.Errorf("the Events are %+v", facts.Events)
	}
	if text := strings.Join(facts.Unread, "\n"); text != "authors of changes of kinds that the user may not list: pods" {
		t.Errorf("not read is %q", text)
	}
}

// The Namespace itself is among the objects of its view: its managedFields have the author of its creation.
func TestTheFactsOfANamespaceHaveTheNamespaceItself(t *testing.T) {
	api := fakeapi.New()
	server := api.Serve(object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"})
	api.Serve(kind("events", "Event").Resource)
	when := metav1.NewTime(noon)
	for _, name := range []string{"shop", "other"} {
		if err := server.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, Time: &when, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
		}}}}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	g := gather.Gatherer{Client: c, Record: gather.Local(recordOfWeb(t))}
	facts := g.Changed(t.Context(), nil, "shop", noon.Add(-time.Minute))
	if len(facts.Objects) != 1 || facts.Objects[0].Object.String() != "Namespace shop" {
		t.Errorf("the objects are %+v, want the Namespace shop", facts.Objects)
	}
	if facts = g.Changed(t.Context(), nil, "gone", noon.Add(-time.Minute)); len(facts.Objects) != 0 || len(facts.Unread) != 0 {
		t.Errorf("of a Namespace that does not exist there are %+v, and %q is not read", facts.Objects, facts.Unread)
	}
}

// Without a record the facts of the cluster remain.
func TestTheFactsOfANamespaceWithoutARecord(t *testing.T) {
	secrets := kind("secrets", "Secret")
	c, err := client.New(fakeapi.New().Serve(secrets.Resource).Config())
	if err != nil {
		t.Fatal(err)
	}
	facts := gather.Gatherer{Client: c, Record: gather.None("no manager")}.Changed(t.Context(), []client.Served{secrets}, "shop", noon)
	if facts.Recorded || facts.NotRecorded != "no manager" {
		t.Errorf("the facts are %+v", facts)
	}
	if text := strings.Join(facts.Unread, "\n"); !strings.HasPrefix(text, "Events: ") {
		t.Errorf("not read is %q, want the Events, which this server does not have", text)
	}
}

// A search finds objects of all kinds by a part of their names, and says which kinds it could not search.
func TestFindByAPartOfTheName(t *testing.T) {
	api := fakeapi.New()
	secrets, pods, maps := kind("secrets", "Secret"), kind("pods", "Pod"), kind("configmaps", "ConfigMap")
	for _, k := range []*client.Served{&secrets, &pods, &maps} {
		k.Verbs = append(k.Verbs, "get")
	}
	server := api.Serve(secrets.Resource)
	for _, name := range []string{"web-token", "db-token"} {
		if err := server.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	many := api.Serve(maps.Resource)
	for i := range 600 {
		if err := many.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("m-%03d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	api.Serve(pods.Resource).Before(func(*fakeapi.Request) *metav1.Status {
		return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	})
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	g := gather.Gatherer{Client: c, Record: gather.None("no manager")}
	for text, want := range map[string]string{ //nolint:gosec // names of Secrets
		"web": "Secret shop/web-token", "token": "Secret shop/db-token, Secret shop/web-token", "m-599": "ConfigMap shop/m-599", "m-59": "", "nothing": "",
	} {
		found := g.Find(t.Context(), []client.Served{secrets, pods, maps}, text)
		var names []string
		for _, o := range found.Objects {
			names = append(names, o.String())
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
		unread := "parts of names beyond the first 500 of each of: configmaps\nobjects of kinds that the user may not list: pods"
		if got := strings.Join(found.Unread, "\n"); got != unread {
			t.Errorf("not searched is\n%s, want\n%s", got, unread)
		}
	}
}
