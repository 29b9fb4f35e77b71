// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// hostile is text that ends an attribute and an element, steers a terminal, and turns the direction of text.
const hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\x00\u202e{{.}}"

// checkHarmless checks that hostile text reached a view, escaped.
func checkHarmless(t *testing.T, body string) {
	t.Helper()
	if !strings.Contains(body, "&lt;script&gt;") {
		t.Error("the view does not show the text")
	}
	for _, bad := range []string{"<script>alert", "<img", "onerror=alert(1)>"} {
		if strings.Contains(strings.ReplaceAll(body, "onerror=alert(1)&gt;", ""), bad) {
			t.Errorf("the view has %s", bad)
		}
	}
	if i := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }); i >= 0 {
		t.Errorf("the view has the character %q: %q", body[i:i+1], body[max(0, i-40):i+8])
	}
}

func TestTextOfObjectsIsHarmless(t *testing.T) {
	s := rollout(t)
	s.overview = inTrouble()
	s.overview.Instance = hostile
	s.overview.Loops[3].Failed[0].Key, s.overview.Loops[3].Failed[0].Error = "shop/"+hostile, hostile
	s.overview.Loops[2].Informers[0].Trouble = hostile
	runs.Add(s.record.Loop("hostile"+hostile, "apps", "Deployment"), object.Key{Namespace: "shop", Name: "web"}, &runs.Ended{
		Began: time.Now(), Outcome: runs.Failed, Error: hostile,
		Writes:  []runs.Write{{Verb: "patch" + hostile, Object: runs.Object{Kind: hostile, Name: hostile}, Fields: []string{hostile}}},
		Reasons: []runs.Reason{{Code: hostile, Text: hostile, Ends: hostile, Until: runs.Object{Kind: "Pod", Name: hostile}}},
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad", UID: "uid-bad", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid-web-1"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: hostile, Operation: "Update"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: hostile,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: hostile}}}}}}
	if err := s.resource["pods"].Put(pod); err != nil {
		t.Fatal(err)
	}
	p := newPage(s)
	for _, path := range []string{"/", "/o/apps/deployments/shop/web", "/o/apps/deployments/shop/web?run=3", "/o/core/pods/shop/bad"} {
		t.Run(path, func(t *testing.T) {
			w := get(t, p, path)
			if w.Code != http.StatusOK {
				t.Fatalf("the answer is %d: %s", w.Code, w.Body)
			}
			checkHarmless(t, w.Body.String())
		})
	}
}

func TestAddressesThatAreWrong(t *testing.T) {
	p := newPage(rollout(t))
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/o/apps/deployments/shop/gone":                                 {http.StatusNotFound, "Deployment shop/gone does not exist, and the record has no run about it"},
		"/o/apps/widgets/shop/web":                                      {http.StatusNotFound, "the API server serves no kind"},
		"/o/apps/deployments/-/web":                                     {http.StatusNotFound, "each Deployment is in a namespace"},
		"/o/core/nodes/shop/a":                                          {http.StatusNotFound, "no Node is in a namespace"},
		"/o/apps/deployments/shop/web?run=x":                            {http.StatusBadRequest, "want the number of a run"},
		"/o/apps/deployments/shop/web?run=7-":                           {http.StatusBadRequest, "want the number of a run"},
		"/o/apps/deployments/shop/web?below=0":                          {http.StatusBadRequest, "want a number of objects"},
		"/o/apps/deployments/shop/web?scrub=x":                          {http.StatusBadRequest, "want milliseconds since 1970"},
		"/o/apps/deployments/shop/web?at=noon":                          {http.StatusBadRequest, "want a time such as"},
		"/o/apps/deployments/shop/" + strings.Repeat("a", 300):          {http.StatusBadRequest, "the name of the address: it has more than 253 bytes"},
		"/o/apps/deployments/shop/%00":                                  {http.StatusBadRequest, "it has characters that no name has"},
		"/o/apps/deployments/shop/" + url.PathEscape("<script>alert()"): {http.StatusNotFound, "&lt;script&gt;"},
		"/live?view=" + url.QueryEscape("//evil.example.com/"):          {http.StatusBadRequest, "want the address of a view"},
		"/live?view=" + url.QueryEscape("/assets/page.js"):              {http.StatusNotFound, "there is no view"},
		"/elsewhere": {http.StatusNotFound, "not found"},
	} {
		w := get(t, p, path)
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.text) || strings.Contains(w.Body.String(), "<script>alert") {
			t.Errorf("%s is answered with %d and\n%s\nwant %d with %q", path, w.Code, w.Body, want.code, want.text)
		}
	}
	// A run that is not kept, and a time before the first run.
	body := get(t, p, "/o/apps/deployments/shop/web?run=999&at=2020-01-01T00:00:00Z").Body.String()
	for _, want := range []string{"The record does not have run 999", "no run that is recorded had begun"} {
		if !strings.Contains(body, want) {
			t.Errorf("the view has no %q", want)
		}
	}
}

// A thousand Pods that are alike are a few lines.
func TestAThousandChildrenFold(t *testing.T) {
	s := rollout(t)
	for i := range 400 {
		name := fmt.Sprintf("many-%d", i)
		if err := s.resource["pods"].Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
			Labels:          map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid-web-1"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	body := get(t, newPage(s), "/o/apps/deployments/shop/web").Body.String()
	if n := strings.Count(body, `<li class="depth1">`); n != 3 || !strings.Contains(body, "and 398 like this") || !strings.Contains(body, "402 objects") {
		t.Errorf("%d Pods are named; want 3, and 398 like them of 402 objects below", n)
	}
	if len(body) > 100_000 {
		t.Errorf("the view has %d bytes", len(body))
	}
	// The link unfolds them, a hundred at a time, and another one folds them again.
	p, pages := newPage(s), 0
	link := regexp.MustCompile(`<a id="unfold" href="([^"#]+)#below">Name (\d+) more</a>`)
	for next := link.FindStringSubmatch(body); next != nil; next = link.FindStringSubmatch(body) {
		pages++
		body = get(t, p, html.UnescapeString(next[1])).Body.String()
	}
	if n := strings.Count(body, `<li class="depth1">`); n != 401 || pages != 5 || strings.Contains(body, "like this") {
		t.Errorf("after %d links %d Pods are named, want all 401 after 5", pages, n)
	}
	if !strings.Contains(body, `<a id="fold" href="/o/apps/deployments/shop/web#below">`) {
		t.Error("no link folds them again")
	}
}

// An object of 1 MiB is shown in a view of bounded size.
func TestAHugeObjectIsShown(t *testing.T) {
	s := newSource(t)
	huge := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strings.Repeat("long-", 50) + "x", UID: "uid-huge",
		Annotations: map[string]string{"huge": strings.Repeat("x", 1<<20)}},
		Spec:   appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "huge"}}},
		Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: "ReplicaFailure", Status: "True", Message: strings.Repeat("y", 1<<19)}}}}
	if err := s.resource["deployments"].Put(huge); err != nil {
		t.Fatal(err)
	}
	w := get(t, newPage(s), "/o/apps/deployments/shop/"+huge.Name)
	if w.Code != http.StatusOK || w.Body.Len() > 100_000 {
		t.Errorf("the answer is %d with %d bytes", w.Code, w.Body.Len())
	}
}

// Whatever the address is, the answer is a page without script of the address, and no panic.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"/", "/o/apps/deployments/shop/web?run=1&at=2026-01-02T15:04:05Z", "/o/core/pods/-/%2e%2e", "/assets/page.js", "/o/a/b/c/%3Cscript%3Ealert"} {
		f.Add(seed)
	}
	s := newSource(f)
	s.overview = manager.Overview{State: "working"}
	p := newPage(s)
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil || !strings.HasPrefix(u.Path, "/") || u.Host != "" || strings.ContainsAny(address, " \t\r\n") || u.Path == "/live" {
			return
		}
		w := get(t, p, u.String())
		if strings.Contains(w.Body.String(), "<script>") && !strings.HasPrefix(u.Path, "/assets/") {
			t.Errorf("%q is answered with script:\n%s", address, w.Body)
		}
		if w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%q is answered without a policy", address)
		}
	})
}

// A ReplicaSet whose Pod fails is marked, although its own state says nothing. Two Pods that own each other are shown once.
func TestOwnersOfTroubleAreMarked(t *testing.T) {
	s := rollout(t)
	labels := map[string]string{"app": "web"}
	pod := func(name string, owners ...metav1.OwnerReference) {
		t.Helper()
		if err := s.resource["pods"].Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: labels, OwnerReferences: owners},
			Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "web",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	of := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID("uid-" + name)}
	}
	pod("first", of("ReplicaSet", "web-1"), of("Pod", "second"))
	pod("second", of("Pod", "first"))
	body := get(t, newPage(s), "/o/apps/deployments/shop/web").Body.String()
	row := regexp.MustCompile(`<li class="depth0"><span class="mark (\w+)"[^>]*>(.)</span> ReplicaSet`).FindStringSubmatch(body)
	if row == nil || row[1] != "trouble" || row[2] != "▲" {
		t.Errorf("the row of the ReplicaSet is %q, want ▲", row)
	}
	if n := strings.Count(body, `<a href="/o/core/Pod/shop/second">`); n != 1 {
		t.Errorf("the Pod that owns its owner is there %d times, want once", n)
	}
}
