// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/workqueue"
)

// recordARollout records what the tests of rights look at: the Deployment shop/web led to a Pod of its namespace. Its
// cause was a ConfigMap of another namespace, and a run for a Node named the Deployment in a reason.
func recordARollout(record *runs.Record) {
	web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "w"}
	secret := runs.Object{Kind: "ConfigMap", Namespace: "bank", Name: "secret-plan", UID: "c"}
	pod := runs.Object{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "p"}
	began := time.Now()
	runs.Add(record.Loop("planner", "", "ConfigMap"), object.Key{Namespace: "bank", Name: "secret-plan"}, &runs.Ended{
		Began: began, Outcome: runs.Failed, Error: "secret-plan failed",
		Writes: []runs.Write{{Verb: "patch", Object: secret, Version: "10"}, {Verb: "patch", Object: web, Version: "11", Fields: []string{"spec.replicas"}}},
	})
	runs.Add(record.Loop("deployment", "apps", "Deployment"), object.Key{Namespace: "shop", Name: "web"}, &runs.Ended{
		Began: began.Add(time.Second), Outcome: runs.Done, Causes: causesOf(web.Ref(), "11"), Writes: []runs.Write{{Verb: "create", Object: pod, Version: "12"}},
		Reasons: []runs.Reason{
			{Code: "PlanIsMissing", Text: "there is no plan", Until: secret},
			{Code: "PlanIsOld", Text: "the plan {plan} is old", Params: []runs.Param{{Name: "plan", Value: "secret-plan"}}, About: secret},
		},
	})
	runs.Add(record.Loop("node", "", "Node"), object.Key{Name: "node-secret"}, &runs.Ended{
		Began: began.Add(2 * time.Second), Outcome: runs.Done,
		Reasons: []runs.Reason{{Code: "NodeIsFull", Text: "the node is full"}, {Code: "NoRoom", Text: "no room for it", About: web}},
	})
}

// getter asks for a page of the manager as one user.
type getter func(t *testing.T, query string) (code int, text string)

// checkRights checks what three users see of recordARollout: ops may get all runs; dev may get Deployments and Pods in
// namespace shop, and runs about objects; guest may get runs about objects, and no object.
func checkRights(t *testing.T, ops, dev, guest getter) {
	t.Helper()
	const about = "?kind=Deployment&group=apps&namespace=shop&name=web&origins"
	code, text := ops(t, about)
	for _, want := range []string{"until ConfigMap bank/secret-plan changes", "planner bank/secret-plan, run", "create Pod shop/web-1 at 12"} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("ops sees %d %s, want %q", code, text, want)
		}
	}
	if code, text = ops(t, "?limit=3"); code != http.StatusOK || !strings.Contains(text, "NodeIsFull") {
		t.Errorf("ops sees %d %s, want all runs", code, text)
	}
	code, text = dev(t, about)
	for _, want := range []string{"PlanIsMissing: there is no plan (until ConfigMap changes)", "create Pod shop/web-1 at 12", "NoRoom: Deployment.apps shop/web: no room for it",
		"patch Deployment.apps shop/web at 11: spec.replicas", "objects are not named: the user may not get them"} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("dev sees %d %s, want %q", code, text, want)
		}
	}
	_, inJSON := dev(t, about+"&format=json")
	if leaked := "secret"; strings.Contains(text+inJSON, leaked) || strings.Contains(text+inJSON, "NodeIsFull") {
		t.Errorf("dev sees names of objects that it may not get:\n%s\n%s", text, inJSON)
	}
	var page struct {
		Runs               []runs.Run
		Hidden, HiddenRuns int
	}
	if err := json.Unmarshal([]byte(inJSON), &page); err != nil || len(page.Runs) != 3 || page.Hidden == 0 || page.HiddenRuns != 2 {
		t.Errorf("dev reads %s (%v), want three runs, of which two are for other objects", inJSON, err)
	}
	for _, refused := range []struct {
		name, query, says string
		who               getter
	}{
		{"all runs", "", `all runs need the right to get path "/debug/runs"`, dev},
		{"another namespace", "?kind=ConfigMap&namespace=bank&name=secret-plan", "the user may not get ConfigMap bank/secret-plan", dev},
		{"a kind of the cluster", "?kind=Node&name=node-secret", "the user may not get Node node-secret", dev},
		{"a kind of the cluster as if it had namespaces", "?kind=Node&name=node-secret&namespace=shop", "the user may not get Node", dev},
		{"a kind that is not served", "?kind=Nonsense&name=x", "the user may not get Nonsense x", dev},
		{"a search, which would find hidden names", about + "&contains=secret", "a search by contains or key needs the right", dev},
		{"a key", about + "&key=bank/secret-plan", "a search by contains or key needs the right", dev},
		{"by the UID alone", "?uid=w", "want kind=KIND and name=NAME", dev},
		{"an object", about, "the user may not get Deployment.apps shop/web", guest},
	} {
		if code, text := refused.who(t, refused.query); code != http.StatusForbidden || !strings.Contains(text, refused.says) || strings.Contains(text, "PlanIsMissing") {
			t.Errorf("%s: %d %s, want 403 with %q", refused.name, code, text, refused.says)
		}
	}
}

// kindsAndRights is an API server that serves a few kinds, and decides by user, group, kind and namespace.
type kindsAndRights struct {
	*judge
	discovery map[string]string
}

func (s *kindsAndRights) RoundTrip(r *http.Request) (*http.Response, error) {
	text, known := s.discovery[r.URL.Path]
	if !known {
		return s.judge.RoundTrip(r)
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// A user who may get one object, and not all runs, reads what the record has about that object. It has no names of
// objects that the user may not get.
func TestRunsAboutAnObjectAreForUsersWhoMayGetIt(t *testing.T) {
	ours := newAuthority(t, "ours")
	decide := func(of authorizationv1.SubjectAccessReviewSpec) bool {
		path, object := of.NonResourceAttributes, of.ResourceAttributes
		switch {
		case of.User == "ops":
			return path != nil && path.Path == "/debug/runs"
		case path != nil:
			return path.Path == "/debug/runs/objects" && (of.User == "dev" || of.User == "guest")
		}
		return of.User == "dev" && object.Verb == "get" && object.Namespace == "shop" && (object.Resource == "pods" || object.Resource == "deployments" || object.Resource == "nodes")
	}
	server := &kindsAndRights{judge: &judge{Server: fakeapi.New(podsResource), decide: decide, asked: make(chan authorizationv1.SubjectAccessReviewSpec, 100)}, discovery: map[string]string{
		"/api": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced"},{"resource":"configmaps","responseKind":{"kind":"ConfigMap"},"scope":"Namespaced"},
			{"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster"}]}]}]}`,
		"/apis": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced"}]}]}]}`,
	}}
	l := listen(t)
	m := broken(t, &rest.Config{Host: "http://in-memory", Transport: server}, manager.Serve(l, serving.Options{Authentication: serving.Authentication{ClientCAFile: file(t, ours.pem)}}))
	recordARollout(m.Runs())
	run(t, m)
	base := "https://" + l.Addr().String()
	waitFor(t, "the manager to be ready", func() bool { code, _ := ask(t, base+"/readyz", ""); return code == http.StatusOK })
	as := func(name string) getter {
		who := caller{cert: ours.sign(t, pkix.Name{CommonName: name}, nil)}
		return func(t *testing.T, query string) (int, string) {
			t.Helper()
			return who.get(t, base+"/debug/runs"+query)
		}
	}
	checkRights(t, as("ops"), as("dev"), as("guest"))
	if code, text := as("jane")(t, ""); code != http.StatusForbidden || !strings.Contains(text, `User "jane" cannot get path "/debug/runs" and cannot get path "/debug/runs/objects"`) {
		t.Errorf("a user without rights gets %d %s", code, text)
	}
	close(server.asked)
	questions := 0
	for range server.asked {
		questions++
	}
	if questions > 40 { // each right once, although each page asks
		t.Errorf("the API server was asked %d questions", questions)
	}
}

// checkRightsInACluster is the same on a real server, whose roles decide.
func checkRightsInACluster(t *testing.T, cluster *controlplanetest.Cluster, base string, ours *authority) {
	t.Helper()
	for _, args := range [][]string{
		{"create", "namespace", "shop"},
		{"create", "clusterrole", "all-runs", "--verb=get", "--non-resource-url=/debug/runs"},
		{"create", "clusterrolebinding", "all-runs", "--clusterrole=all-runs", "--user=ops"},
		{"create", "clusterrole", "runs-of-objects", "--verb=get", "--non-resource-url=/debug/runs/objects"},
		{"create", "clusterrolebinding", "runs-of-objects", "--clusterrole=runs-of-objects", "--user=dev", "--user=guest"},
		{"create", "role", "dev", "--verb=get", "--resource=deployments.apps,pods,nodes", "-n", "shop"},
		{"create", "rolebinding", "dev", "--role=dev", "--user=dev", "-n", "shop"},
	} {
		if _, err := cluster.Kubectl(args...); err != nil {
			t.Fatal(err)
		}
	}
	as := func(name string) getter {
		who := caller{cert: ours.sign(t, pkix.Name{CommonName: name}, nil)}
		return func(t *testing.T, query string) (int, string) {
			t.Helper()
			return who.get(t, base+"/debug/runs"+query)
		}
	}
	ops, dev, guest := as("ops"), as("dev"), as("guest")
	const about = "?kind=Deployment&group=apps&namespace=shop&name=web"
	for _, of := range []struct {
		who   getter
		query string
		says  string
	}{
		{ops, "", "RUNS"}, {dev, about, "create Pod shop/web-1"}, {guest, about, "may not get Deployment"},
	} { // roles take a moment, and answers are remembered
		waitFor(t, "a role to count", func() bool { _, text := of.who(t, of.query); return strings.Contains(text, of.says) })
	}
	checkRights(t, ops, dev, guest)
}

// causesOf returns the cause of a change of an object, as an informer makes it.
func causesOf(of object.Ref, version string) workqueue.Causes {
	queue := workqueue.New(workqueue.Options[object.Key]{})
	queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "deployments", Verb: workqueue.Updated, Version: version, Ref: of}}, of.Key)
	item, _ := queue.Get()
	return item.Causes
}
