// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The kinds of the tests. Each has the field spec.replicas, which is a number.
var (
	deployment = object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}
	website    = object.Resource{Group: "example.com", Version: "v1", Plural: "websites", Kind: "Website", Namespaced: true}
	gate       = object.Resource{Group: "policy.example.com", Version: "v1", Plural: "gates", Kind: "Gate"}
)

// cluster is a server with policies, inside of a bubble of synctest. The server in memory has no OpenAPI documents, and knows
// all of its kinds: a cluster stands before it and answers for it.
type cluster struct {
	t        *testing.T
	api      *fakeapi.Server
	policies *fakeapi.Resource

	mu    sync.Mutex
	kinds []object.Resource           // those that are served
	away  map[string]http.HandlerFunc // what answers for the document of a group, such as an aggregated server that is away
	stale string                      // a group that discovery does not describe
	asked []string                    // the paths of discoveries and documents
}

func newCluster(t *testing.T, kinds ...object.Resource) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{t: t, api: api, away: map[string]http.HandlerFunc{}}
	c.policies = api.Serve(object.Resource{
		Group: admissionv1.GroupName, Version: "v1", Plural: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy",
	}, fakeapi.WithStatus())
	c.define(kinds...)
	return c
}

// define has the server serve kinds.
func (c *cluster) define(kinds ...object.Resource) {
	for _, kind := range kinds {
		c.api.Serve(kind)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = append(c.kinds, kinds...)
}

// answer sets what answers for the document of a group; nil is the document.
func (c *cluster) answer(group string, with http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away[group] = with
}

// describe sets the group that discovery does not describe, because its aggregated server is away.
func (c *cluster) describe(allBut string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = allBut
}

// forget returns the requests for discoveries and documents, and forgets them.
func (c *cluster) forget() (asked []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, c.asked = c.asked, nil
	return asked
}

func (c *cluster) config() *rest.Config {
	config := rest.CopyConfig(c.api.Config())
	config.Transport = c
	return config
}

// RoundTrip implements http.RoundTripper.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	path, isDocument := strings.CutPrefix(r.URL.Path, "/openapi/v3/apis/")
	c.mu.Lock()
	stale := c.stale
	if isDocument || r.URL.Path == "/apis" {
		c.asked = append(c.asked, r.URL.Path)
	}
	group, version, _ := strings.Cut(path, "/")
	answer := c.away[group]
	if answer == nil {
		answer = documentOf(group, version, c.kinds)
	}
	c.mu.Unlock()
	switch {
	case isDocument:
		w := &recorder{header: http.Header{}, code: http.StatusOK}
		answer(w, r)
		if err := context.Cause(r.Context()); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: w.code, Header: w.header, Body: io.NopCloser(&w.body), ContentLength: -1, Request: r}, nil
	case r.URL.Path == "/apis" && stale != "":
		return without(stale)(c.api.RoundTrip(r))
	}
	return c.api.RoundTrip(r)
}

// recorder is a ResponseWriter that keeps the answer.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(code int)        { w.code = code }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// documentOf answers with the OpenAPI document of a version of a group, with 404 if it is not served.
func documentOf(group, version string, kinds []object.Resource) http.HandlerFunc {
	schemas := map[string]any{}
	for _, kind := range kinds {
		if kind.Group == group && kind.Version == version {
			schemas[kind.Kind] = map[string]any{
				"type": "object", "x-kubernetes-group-version-kind": []map[string]string{{"group": group, "version": version, "kind": kind.Kind}},
				"properties": map[string]any{
					"spec": map[string]any{"type": "object", "properties": map[string]any{"replicas": map[string]any{"type": "integer"}}},
				},
			}
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if len(schemas) == 0 {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"components": map[string]any{"schemas": schemas}}) // into memory
	}
}

// without takes what is known of a group out of an answer of discovery.
func without(group string) func(*http.Response, error) (*http.Response, error) {
	return func(response *http.Response, err error) (*http.Response, error) {
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		var list apidiscovery.APIGroupDiscoveryList
		if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if list.Items[i].Name == group {
				list.Items[i].Versions = []apidiscovery.APIVersionDiscovery{{Version: "v1", Freshness: apidiscovery.DiscoveryFreshnessStale}}
			}
		}
		text, err := json.Marshal(list)
		response.Body = io.NopCloser(bytes.NewReader(text))
		return response, err
	}
}

// unavailable is how an API server answers for an aggregated server that is away.
func unavailable(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "service unavailable", http.StatusServiceUnavailable)
}

func (c *cluster) add(policies ...*admissionv1.ValidatingAdmissionPolicy) {
	c.t.Helper()
	for _, p := range policies {
		if err := c.policies.Add(p); err != nil {
			c.t.Fatal(err)
		}
	}
}

// start runs the controller for a minute.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.config(), managertest.Making(New, Defaults()))
	pass(time.Minute)
	return p
}

// want compares the status of a policy: the generation that was checked, and the kinds in its warnings.
func (c *cluster) want(when, name string, generation int64, kinds ...string) {
	c.t.Helper()
	policy, err := fakeapi.Read[*admissionv1.ValidatingAdmissionPolicy](c.policies, object.Key{Name: name})
	if err != nil || policy == nil {
		c.t.Fatalf("policy %s: %v", name, err)
	}
	var got []string
	if policy.Status.TypeChecking != nil {
		for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
			for line := range strings.SplitSeq(w.Warning, "\n") {
				if _, rest, found := strings.Cut(line, "Kind="); found {
					kind, _, _ := strings.Cut(rest, ":")
					got = append(got, kind)
				}
			}
		}
	}
	if policy.Status.ObservedGeneration != generation || !slices.Equal(got, kinds) {
		c.t.Errorf("%s generation %d of policy %s is checked, and the warnings are about %q; want %d and %q",
			when, policy.Status.ObservedGeneration, name, got, generation, kinds)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// of returns a rule for a kind.
func of(kind object.Resource) admissionv1.NamedRuleWithOperations {
	return rule(kind.Group, kind.Version, kind.Plural)
}

// wrong is an expression that fits none of the kinds.
const wrong = "object.spec.replicas == 'many'"

func TestAPolicyIsCheckedOnceForEachGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment, website)
		c.add(policyOf("right", "object.spec.replicas == 1", of(deployment)), policyOf("wrong", wrong, of(website), of(deployment)))
		p := c.start()
		c.want("at first", "right", 1)
		c.want("at first", "wrong", 1, "Deployment", "Website")
		plain, err := client.New(c.api.Config())
		if err != nil {
			t.Fatal(err)
		}
		policies := client.For[*admissionv1.ValidatingAdmissionPolicy](plain)
		change := func(name string, change func(*admissionv1.ValidatingAdmissionPolicy)) {
			t.Helper()
			policy, err := policies.Get(t.Context(), object.Key{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			change(policy)
			if _, err := policies.Update(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		c.forget()
		change("wrong", func(p *admissionv1.ValidatingAdmissionPolicy) { p.Labels = map[string]string{"team": "a"} })
		if asked := c.forget(); len(asked) > 0 {
			t.Errorf("after a change of its labels alone, the controller reads %q", asked)
		}
		change("wrong", func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].Expression = "object.spec.replicas > 1"
		})
		c.want("when it is mended", "wrong", 2)
		if n := len(p.Writes()); n != 3 {
			t.Errorf("%d writes, want 3", n)
		}
	})
}

func TestAKindWhoseDocumentCannotBeReadKeepsNoOtherKindFromBeingChecked(t *testing.T) {
	for name, broken := range map[string]struct {
		answer http.HandlerFunc
		why    string
	}{
		"the server is away": {unavailable, "the server is currently unable to handle the request"},
		"the document is no JSON": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "invalid character '<'",
		},
		"the server does not answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within " + discovery.Patience.String()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, deployment, website)
				c.answer(website.Group, broken.answer)
				c.add(policyOf("p", wrong, of(website), of(deployment)))
				p := c.start()
				c.want("without the kind", "p", 1, "Deployment")
				reasons := strings.Join(p.Reasons("p"), "\n")
				for _, want := range []string{"KindsNotKnown: ", "Website.example.com", broken.why} {
					if !strings.Contains(reasons, want) {
						t.Errorf("the reasons are %q, want %q in them", reasons, want)
					}
				}
				if lines := strings.Join(p.Warnings(), "\n"); !strings.Contains(lines, broken.why) {
					t.Errorf("the log says %q, want %q in it", lines, broken.why)
				}
				c.forget()
				pass(time.Hour)
				if n := len(c.forget()); n < 6 || n > 100 {
					t.Errorf("%d requests within an hour; want some, with growing pauses", n)
				}
				if n := len(p.Writes()); n != 1 {
					t.Errorf("%d writes, want 1", n)
				}
				c.answer(website.Group, nil)
				pass(time.Hour)
				c.want("when the document can be read", "p", 1, "Deployment", "Website")
				if reasons := p.Reasons("p"); len(reasons) > 0 {
					t.Errorf("the reasons are %q, want none", reasons)
				}
			})
		})
	}
}

func TestParametersWhoseDocumentCannotBeReadAreOfAnyType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment, gate)
		c.answer(gate.Group, unavailable)
		policy := policyOf("p", "params.spec.replicas == 'many'", of(deployment))
		policy.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: gate.GroupVersion().String(), Kind: gate.Kind}
		c.add(policy, policyOf("other", wrong, of(deployment)))
		p := c.start()
		c.want("without the type of the parameters", "p", 1)
		c.want("meanwhile", "other", 1, "Deployment")
		if got := strings.Join(p.Reasons("p"), "\n"); !strings.Contains(got, "KindsNotKnown: ") || !strings.Contains(got, "Gate.policy.example.com") {
			t.Errorf("the reasons are %q", got)
		}
		c.answer(gate.Group, nil)
		pass(time.Hour)
		c.want("with the type of the parameters", "p", 1, "Deployment")
	})
}

func TestParametersOfAKindThatIsNotServedAreLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment)
		policy := policyOf("p", "params.spec.replicas == 'many'", of(deployment))
		policy.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: gate.GroupVersion().String(), Kind: gate.Kind}
		c.add(policy)
		p := c.start()
		c.want("before the kind is defined", "p", 1)
		if got := strings.Join(p.Reasons("p"), "\n"); !strings.Contains(got, "KindsNotServed: ") || !strings.Contains(got, "does not serve Gate.policy.example.com") {
			t.Errorf("the reasons are %q", got)
		}
		if lines := p.Warnings(); len(lines) > 0 {
			t.Errorf("the log says %q, and nothing has failed", lines)
		}
		c.define(gate)
		pass(time.Hour)
		c.want("when the kind is defined", "p", 1, "Deployment")
		if reasons := p.Reasons("p"); len(reasons) > 0 {
			t.Errorf("the reasons are %q, want none", reasons)
		}
	})
}

// An API server does not describe the kinds of an aggregated server that is away. Its document of them may be gone as well.
func TestAGroupThatDiscoveryDoesNotDescribeIsNotOneThatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment, website, gate)
		c.describe(website.Group)
		c.answer(website.Group, http.NotFound)
		policy := policyOf("params", "params.spec.replicas == 'many'", of(deployment))
		policy.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: website.GroupVersion().String(), Kind: website.Kind}
		c.add(policyOf("p", wrong, of(website), of(deployment)), policy)
		p := c.start()
		c.want("without the group", "p", 1, "Deployment")
		c.want("without the group", "params", 1)
		for _, key := range []string{"p", "params"} {
			if got := strings.Join(p.Reasons(key), "\n"); !strings.HasPrefix(got, "KindsNotKnown: ") || !strings.Contains(got, "stale GroupVersion discovery: example.com/v1") {
				t.Errorf("the reasons of %s are %q", key, got)
			}
		}
		c.describe("")
		c.answer(website.Group, nil)
		pass(time.Hour)
		c.want("with the group", "p", 1, "Deployment", "Website")
		c.want("with the group", "params", 1, "Deployment")
	})
}

// A process begins while the server of a kind is away. The process before it has checked the policy with that kind.
func TestWarningsAboutAKindStayWhileItCannotBeRead(t *testing.T) {
	for name, spoil := range map[string]func(*cluster){
		"no document":        func(c *cluster) { c.answer(website.Group, unavailable) },
		"an unknown group":   func(c *cluster) { c.describe(website.Group) },
		"neither of the two": func(c *cluster) { c.describe(website.Group); c.answer(website.Group, http.NotFound) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, deployment, website)
				c.add(policyOf("p", wrong, of(website), of(deployment), of(gate)))
				c.start().Kill()
				c.want("by the first process", "p", 1, "Deployment", "Website")
				spoil(c)
				p := c.start()
				c.define(gate)
				pass(time.Hour)
				c.want("while the kind cannot be read", "p", 1, "Deployment", "Website")
				if n := len(p.Writes()); n != 0 {
					t.Errorf("%d writes, want none", n)
				}
				c.answer(website.Group, nil)
				c.describe("")
				pass(time.Hour)
				c.want("when it can be read", "p", 1, "Deployment", "Website", "Gate")
			})
		})
	}
}

// A kind that is served in the meantime is checked although another one still cannot be read: nothing is lost by that.
func TestAKindThatCannotBeReadKeepsNoLaterKindFromBeingChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment, website)
		c.answer(website.Group, unavailable)
		c.add(policyOf("p", wrong, of(website), of(deployment), of(gate)))
		c.start()
		c.want("at first", "p", 1, "Deployment")
		c.define(gate)
		pass(time.Hour)
		c.want("when another kind is defined", "p", 1, "Deployment", "Gate")
	})
}

func TestAKindThatWasNotServedIsLookedForByTheNextProcess(t *testing.T) {
	for name, begin := range map[string]func(*cluster){
		"which begins before the kind is defined": func(c *cluster) {
			p := c.start()
			c.want("by the second process", "p", 1, "Deployment")
			if got := strings.Join(p.Reasons("p"), "\n"); !strings.Contains(got, "KindsNotServed: ") || !strings.Contains(got, "does not serve gates") {
				c.t.Errorf("the reasons in the second process are %q", got)
			}
			c.define(gate)
		},
		"which begins after the kind is defined": func(c *cluster) {
			c.define(gate)
			c.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, deployment)
				params := policyOf("params", "params.spec.replicas == 'many'", of(deployment))
				params.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: gate.GroupVersion().String(), Kind: gate.Kind}
				c.add(policyOf("p", wrong, of(deployment), of(gate)), params)
				c.start().Kill()
				c.want("by the first process", "p", 1, "Deployment")
				c.want("by the first process", "params", 1)
				begin(c)
				pass(time.Hour)
				c.want("when the kind is defined", "p", 1, "Deployment", "Gate")
				c.want("when the kind is defined", "params", 1, "Deployment")
			})
		})
	}
}

// A newer server serves a kind of Kubernetes in a version that the policy names.
func TestAVersionThatWasNotServedIsLookedForByTheNextProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := deployment
		old.Version = "v1beta1"
		c := newCluster(t, old)
		c.add(policyOf("p", wrong, of(deployment)))
		c.start().Kill()
		c.want("by the first process", "p", 1)
		p := c.start()
		if got := strings.Join(p.Reasons("p"), "\n"); !strings.Contains(got, "does not serve Deployment.apps") {
			t.Errorf("the reasons in the second process are %q", got)
		}
		c.define(deployment)
		pass(time.Hour)
		c.want("when the version is served", "p", 1, "Deployment")
	})
}

// A backup may bring a policy and its status back at any time. What the server served when the process began says nothing then.
func TestAPolicyThatComesBackWithItsStatusIsLookedAtWithTheKindsOfThatTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment)
		add := func(name string) {
			policy := policyOf(name, "object.spec.replicas == 1", of(deployment))
			policy.Generation, policy.Status.ObservedGeneration = 1, 1
			c.add(policy)
			pass(time.Minute)
		}
		add("first")
		p := c.start()
		if reasons := p.Reasons("first"); len(reasons) > 0 {
			t.Errorf("the reasons are %q, want none", reasons)
		}
		c.api.Withdraw(deployment)
		add("second")
		if got := strings.Join(p.Reasons("second"), "\n"); !strings.Contains(got, "does not serve deployments") {
			t.Errorf("the reasons are %q", got)
		}
	})
}

func TestASecondProcessWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment, website)
		for i := range 20 {
			c.add(policyOf(fmt.Sprint("deployment-", i), wrong, of(deployment)))
		}
		withParams := policyOf("params", wrong, of(deployment))
		withParams.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: deployment.GroupVersion().String(), Kind: deployment.Kind}
		c.add(policyOf("website", wrong, of(website)), policyOf("none", wrong, rule("*", "*", "*")), withParams)
		c.start().Kill()
		c.forget()
		p := c.start()
		// A custom kind may have been defined between the processes, so the types of the policy that names one are read.
		if got, want := c.forget(), []string{"/apis", "/openapi/v3/apis/example.com/v1"}; !slices.Equal(got, want) {
			t.Errorf("the second process reads %q, want %q", got, want)
		}
		pass(24 * time.Hour)
		if n := len(p.Writes()); n != 0 {
			t.Errorf("%d writes, want none", n)
		}
		if asked := c.forget(); len(asked) > 0 {
			t.Errorf("later it reads %q, want nothing", asked)
		}
	})
}

func TestAWriteWhoseAnswerIsLostIsMadeAgainWithTheSameContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment)
		c.policies.LoseNext(2, "patch")
		c.add(policyOf("p", wrong, of(deployment)))
		c.start()
		pass(time.Hour)
		c.want("at last", "p", 1, "Deployment")
	})
}

// The status of one policy must not become that of another one of its name: the other one would count as checked.
func TestAPolicyThatReplacesAnotherOneOfItsNameGetsItsOwnStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment)
		replaced := false
		c.policies.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && !replaced {
				replaced = true
				c.policies.Remove(q.Key)
				c.add(policyOf(q.Key.Name, wrong, of(deployment)))
			}
			return nil
		})
		c.add(policyOf("p", "object.spec.replicas == 1", of(deployment)))
		p := c.start()
		if !replaced {
			t.Fatal("the policy was not replaced")
		}
		pass(time.Hour)
		c.want("at last", "p", 1, "Deployment")
		if n := len(p.Writes()); n != 1 {
			t.Errorf("%d writes, want that of the second policy alone", n)
		}
	})
}

func TestDiscoveryThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, deployment)
		c.add(policyOf("new", wrong, of(deployment)))
		checked := policyOf("checked", "object.spec.replicas == 1", of(gate))
		checked.Generation, checked.Status.ObservedGeneration = 1, 1
		c.add(checked)
		config := c.config()
		var mu sync.Mutex
		fails := true
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				refuse := fails && r.URL.Path == "/apis"
				mu.Unlock()
				if refuse {
					return nil, io.ErrUnexpectedEOF
				}
				return next.RoundTrip(r)
			})
		})
		p := managertest.Run(t, config, managertest.Making(New, Defaults()))
		pass(time.Minute)
		c.want("without discovery", "new", 0)
		mu.Lock()
		fails = false
		mu.Unlock()
		pass(time.Hour)
		c.want("with discovery", "new", 1, "Deployment")
		if got := strings.Join(p.Reasons("checked"), "\n"); !strings.Contains(got, "does not serve gates") {
			t.Errorf("the reasons are %q", got)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAProcessThatIsKilledAfterItsWritesMakesEachOfThemOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		c := newCluster(t, deployment, website)
		c.answer(website.Group, unavailable)
		c.add(policyOf("later", wrong, of(deployment), of(website), of(gate)),
			policyOf("right", "object.spec.replicas == 1", of(deployment)), policyOf("wrong", wrong, of(deployment)))
		return managertest.Scene{
			Config: c.config(), Make: managertest.Making(New, Defaults()), Await: func() { pass(time.Hour) },
			Check: func(t *testing.T) {
				c.t = t
				c.want("at the end", "later", 1, "Deployment")
				c.want("at the end", "right", 1)
				c.want("at the end", "wrong", 1, "Deployment")
			},
		}
	})
}
