// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterroleaggregation_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// run is a controller at work, with the rights that it declares and no others.
type run struct {
	*manager.Manager
	writes atomic.Int64 // requests that change something
	stop   func()       // ends it without a word
}

func start(t *testing.T) *run {
	t.Helper()
	r := &run{}
	config := shared.Get(t).Restricted(t, clusterroleaggregation.Rights())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			if q.Method != http.MethodGet {
				r.writes.Add(1)
			}
			return next.RoundTrip(q)
		})
	})
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := clusterroleaggregation.New(mgr, clusterroleaggregation.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	r.Manager = mgr
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// create makes a ClusterRole that goes with the test.
func create(t *testing.T, role *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	t.Helper()
	roles := client.For[*rbacv1.ClusterRole](shared.Get(t).Client)
	role, err := roles.Create(t.Context(), role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = roles.Delete(context.WithoutCancel(t.Context()), object.KeyOf(role)) // a test may have deleted it
	})
	return role
}

func sumOf(name, label string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}},
		},
		Rules: rules,
	}
}

func partOf(name, label, resource string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}},
		Rules:      []rbacv1.PolicyRule{readOf(resource)},
	}
}

func readOf(resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{resource}, Verbs: []string{"get"}}
}

// await waits until the rules of a sum are to read these resources.
func await(t *testing.T, r *run, sum string, resources ...string) *rbacv1.ClusterRole {
	t.Helper()
	return controlplanetest.Await(t, r, object.Key{Name: sum}, "the rules of "+sum, func(role *rbacv1.ClusterRole) bool {
		var got []string
		for _, rule := range role.Rules {
			got = append(got, rule.Resources...)
		}
		return slices.Equal(got, resources)
	})
}

// grants reports whether one of the rules grants a verb on a resource.
func grants(role *rbacv1.ClusterRole, verb, resource string) bool {
	return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.Resources, resource)
	})
}

func TestTheBuiltInRolesAreFilledAndEachHasWhatTheNextHas(t *testing.T) {
	builtInRolesAreFilled(t, start(t))
}

func builtInRolesAreFilled(t *testing.T, r *run) {
	t.Helper()
	get := func(name string, holds func(*rbacv1.ClusterRole) bool) {
		t.Helper()
		controlplanetest.Await(t, r, object.Key{Name: name}, "the rules of "+name, holds)
	}
	get("view", func(role *rbacv1.ClusterRole) bool {
		return grants(role, "list", "pods") && !grants(role, "create", "pods") && !grants(role, "get", "secrets")
	})
	get("edit", func(role *rbacv1.ClusterRole) bool {
		return grants(role, "list", "pods") && grants(role, "create", "pods") && !grants(role, "create", "rolebindings")
	})
	get("admin", func(role *rbacv1.ClusterRole) bool {
		return grants(role, "list", "pods") && grants(role, "create", "pods") && grants(role, "create", "rolebindings")
	})
}

func TestASumFollowsItsParts(t *testing.T) {
	r := start(t)
	const label = "test/follows"
	create(t, sumOf("follows", label))
	create(t, partOf("follows-b", label, "bees"))
	await(t, r, "follows", "bees")
	ants := create(t, partOf("follows-a", label, "ants"))
	await(t, r, "follows", "ants", "bees")

	ants.Rules = []rbacv1.PolicyRule{readOf("ants"), readOf("wasps")}
	roles := client.For[*rbacv1.ClusterRole](r.Client())
	admin := client.For[*rbacv1.ClusterRole](shared.Get(t).Client)
	ants, err := admin.Update(t.Context(), ants)
	if err != nil {
		t.Fatal(err)
	}
	await(t, r, "follows", "ants", "wasps", "bees")

	ants.Labels = nil // no part any more
	if _, err := admin.Update(t.Context(), ants); err != nil {
		t.Fatal(err)
	}
	await(t, r, "follows", "bees")

	if err := admin.Delete(t.Context(), object.Key{Name: "follows-b"}); err != nil {
		t.Fatal(err)
	}
	await(t, r, "follows")

	// It may write rules that it does not have itself, and nothing else.
	if _, err := roles.Create(t.Context(), partOf("follows-c", label, "bees")); err == nil {
		t.Error("the controller's rights let it create a ClusterRole")
	}
}

func TestASumOfSumsIsFilled(t *testing.T) {
	r := start(t)
	create(t, sumOf("chain-3", "test/chain-3"))
	middle := sumOf("chain-2", "test/chain-2")
	middle.Labels = map[string]string{"test/chain-3": "true"}
	create(t, middle)
	create(t, partOf("chain-1", "test/chain-2", "links"))
	await(t, r, "chain-3", "links")
}

func TestRulesThatNoPartHasAreRemovedWhoeverWroteThem(t *testing.T) {
	r := start(t)
	create(t, sumOf("foreign", "test/foreign", readOf("secrets")))
	await(t, r, "foreign")
	create(t, partOf("foreign-part", "test/foreign", "ants"))
	role := await(t, r, "foreign", "ants")

	role = role.DeepCopy()
	role.Rules = append(role.Rules, readOf("secrets"))
	if _, err := client.For[*rbacv1.ClusterRole](shared.Get(t).Client).Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	await(t, r, "foreign", "ants")
}

func TestRolesThatAreNoSumsAreNotWritten(t *testing.T) {
	r := start(t)
	plain := create(t, partOf("plain", "test/plain", "ants"))
	create(t, sumOf("plain-sum", "test/plain"))
	await(t, r, "plain-sum", "ants")
	now, err := client.For[*rbacv1.ClusterRole](shared.Get(t).Client).Get(t.Context(), object.KeyOf(plain))
	if err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != plain.ResourceVersion {
		t.Errorf("%s was written", plain.Name)
	}
}

// A controller that is ended in the middle of its work leaves nothing that the next
// one does wrong or twice.
func TestAControllerThatIsEndedAndStartedAgainWritesWhatIsMissingAndNothingTwice(t *testing.T) {
	create(t, sumOf("restart", "test/restart"))
	parts := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range parts {
		r := start(t)
		create(t, partOf("restart-"+name, "test/restart", name))
		r.stop()
	}
	r := start(t)
	builtInRolesAreFilled(t, r) // unless another test has waited for that
	await(t, r, "restart", parts...)
	versions := func() map[types.UID]string {
		list, _, err := client.For[*rbacv1.ClusterRole](shared.Get(t).Client).List(t.Context(), client.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		all := map[types.UID]string{}
		for _, role := range list {
			if role.AggregationRule != nil {
				all[role.UID] = role.ResourceVersion
			}
		}
		return all
	}
	r.stop()
	before := versions()

	// What it looks at when it starts is as it should be: no write. It has looked at
	// all of that once it has done what comes after.
	r = start(t)
	create(t, sumOf("restart-z", "test/restart"))
	await(t, r, "restart-z", parts...)
	for uid, version := range versions() {
		if was, known := before[uid]; known && was != version {
			t.Errorf("a sum that was as it should be was written: %s", uid)
		}
	}
	if n := r.writes.Load(); n != 1 {
		t.Errorf("%d writes, want the 1 of the new sum", n)
	}
}

func TestASumThatIsDeletedIsNotMadeAnew(t *testing.T) {
	r := start(t)
	roles := client.For[*rbacv1.ClusterRole](shared.Get(t).Client)
	for range 10 {
		create(t, partOf("gone-part", "test/gone", "ants"))
		create(t, sumOf("gone", "test/gone"))
		for _, name := range []string{"gone", "gone-part"} {
			if err := roles.Delete(t.Context(), object.Key{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	create(t, partOf("later-part", "test/later", "ants"))
	create(t, sumOf("later", "test/later"))
	await(t, r, "later", "ants")
	if _, err := roles.Get(t.Context(), object.Key{Name: "gone"}); err == nil {
		t.Error("a sum that was deleted is there again")
	}
}
