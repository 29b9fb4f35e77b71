// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// describing returns a client of a server that answers paths with JSON, and other paths with
// 503. It is a raw server: discovery has answers that fakeapi never gives, such as those of a
// group that is away, or of a kind whose plural changes.
func describing(t *testing.T, answers map[string]string) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// said writes kinds as "pods.v1. Pod list,delete", for comparison.
func said(kinds []client.Served) []string {
	var all []string
	for _, k := range kinds {
		scope := ""
		if k.Namespaced {
			scope = " namespaced"
		}
		names := strings.Join(append([]string{k.Singular}, k.Short...), " ")
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s.%s.%s %s %s%s %s", k.Plural, k.Version, k.Group, k.Kind, strings.Join(k.Verbs, ","), scope, names)))
	}
	return all
}

// The same server, in the form of today and in that of old.
var (
	aggregatedForm = map[string]string{
		"/api": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","shortNames":["po"],"verbs":["list","delete"],"subresources":[{"subresource":"log"}]},
			{"resource":"bindings","scope":"Namespaced","verbs":[],"subresources":[{"subresource":"x"}]}]}]}]}`,
		"/apis": `{"kind":"APIGroupDiscoveryList","items":[
			{"metadata":{"name":"apps"},"versions":[
				{"version":"v1","freshness":"Current","resources":[{"resource":"webs","responseKind":{"kind":"Web"},"scope":"Namespaced","verbs":["list"]}]},
				{"version":"v1beta1","freshness":"Current","resources":[
					{"resource":"webs","responseKind":{"kind":"Web"},"scope":"Namespaced","verbs":["list"]},
					{"resource":"olds","responseKind":{"kind":"Old"},"scope":"Cluster","verbs":["get"]}]}]},
			{"metadata":{"name":"away"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`,
	}
	oldForm = map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"resources":[{"name":"pods","singularName":"pod","shortNames":["po"],"kind":"Pod","namespaced":true,"verbs":["list","delete"]},{"name":"pods/log","kind":"Pod","namespaced":true,"verbs":["get"]}]}`,
		"/apis": `{"kind":"APIGroupList","groups":[
			{"name":"apps","versions":[{"version":"v1beta1"},{"version":"v1"}],"preferredVersion":{"version":"v1"}},
			{"name":"away","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}]}`,
		"/apis/apps/v1":      `{"resources":[{"name":"webs","kind":"Web","namespaced":true,"verbs":["list"]}]}`,
		"/apis/apps/v1beta1": `{"resources":[{"name":"webs","kind":"Web","namespaced":true,"verbs":["list"]},{"name":"olds","kind":"Old","verbs":["get"]}]}`,
	}
)

func TestDiscoveryTakesTheVersionThatTheServerPrefersAndNamesWhatIsUnknown(t *testing.T) {
	want := []string{"pods.v1. Pod list,delete namespaced pod po", "webs.v1.apps Web list namespaced", "olds.v1beta1.apps Old get"}
	for name, answers := range map[string]map[string]string{"all groups in one answer": aggregatedForm, "an answer for each version": oldForm} {
		t.Run(name, func(t *testing.T) {
			kinds, err := describing(t, answers).Discover(t.Context())
			if got := said(kinds); !slices.Equal(got, want) {
				t.Errorf("discovered %q, want %q", got, want)
			}
			var partial *client.DiscoveryError
			if !errors.As(err, &partial) || len(partial.Failed) != 1 || partial.Failed[schema.GroupVersion{Group: "away", Version: "v1"}] == nil {
				t.Errorf("the error is %v, want one that names away/v1 alone", err)
			}
		})
	}
}

func TestDiscoveryThatFailsAltogetherHasNoKinds(t *testing.T) {
	kinds, err := describing(t, nil).Discover(t.Context())
	if len(kinds) > 0 || !apierrors.IsServiceUnavailable(err) {
		t.Errorf("discovered %v and the error is %v, want that the service is unavailable", kinds, err)
	}
	_, err = describing(t, map[string]string{"/api": `{"kind":"Pod"}`}).Discover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is a \"Pod\"") {
		t.Errorf("the error is %v, want one that says what was found", err)
	}
}

func TestDiscoveryOfARealServer(t *testing.T) {
	kinds, err := shared.Get(t).Client.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []object.Resource{
		{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
		{Version: "v1", Plural: "nodes", Kind: "Node"},
		{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true},
		{Group: "autoscaling", Version: "v2", Plural: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true},
	} {
		at := slices.IndexFunc(kinds, func(k client.Served) bool { return k.Resource == want })
		if at < 0 || !kinds[at].Can("deletecollection") || kinds[at].Can("fly") {
			t.Errorf("%v is not among what is served, or its verbs are wrong: %v", want, kinds)
		}
	}
}

func TestDiscoveryCorrectsWhatIsRememberedOfAKind(t *testing.T) {
	form := func(plural, scope string, namespaced bool) map[string]string {
		return map[string]string{
			"/api": `{"kind":"APIGroupDiscoveryList"}`,
			"/apis": fmt.Sprintf(`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.org"},"versions":[{"version":"v1","freshness":"Current",
				"resources":[{"resource":%q,"responseKind":{"kind":"Web"},"scope":%q,"verbs":["list"]}]}]}]}`, plural, scope),
			"/apis/example.org/v1": fmt.Sprintf(`{"resources":[{"name":%q,"kind":"Web","namespaced":%t,"verbs":["list"]}]}`, plural, namespaced),
		}
	}
	answers := form("webs", "Namespaced", true)
	c := describing(t, answers)
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Web"}
	before, err := c.Resolve(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(answers, form("cobwebs", "Cluster", false))
	if _, err := c.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, err := c.Resolve(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	if before.Plural != "webs" || !before.Namespaced || now.Plural != "cobwebs" || now.Namespaced {
		t.Errorf("was %+v, is %+v", before, now)
	}
}
