// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Restricted returns a configuration that connects as somebody new who has these
// rights, in all namespaces, and no others but those that the server gives to
// whoever it knows: to discover what it serves, and to ask for one's own rights.
// It is safe to be changed. The rights end with the test.
//
// The server's authorizer learns of rights by a watch; they hold when Restricted
// returns.
func (c *Cluster) Restricted(t testing.TB, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	name := notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-")
	name = fmt.Sprintf("test:%.50s-%05x", strings.Trim(name, "-"), rand.IntN(1<<20))
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}

	roles := client.For[*rbacv1.ClusterRole](c.Client)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := roles.Create(t.Context(), role); err != nil {
		t.Fatalf("making a role for the test: %v", err)
	}
	t.Cleanup(func() { remove(t, roles, object.Key{Name: name}) })
	bindings := client.For[*rbacv1.ClusterRoleBinding](c.Client)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
	if _, err := bindings.Create(t.Context(), binding); err != nil {
		t.Fatalf("binding a role for the test: %v", err)
	}
	t.Cleanup(func() { remove(t, bindings, object.Key{Name: name}) })

	c.AwaitRights(t, config, rules)
	return config
}

// AwaitRights waits until the server's authorizer has seen that who config connects as
// has these rights, all of which one binding to one role gives.
func (c *Cluster) AwaitRights(t testing.TB, config *rest.Config, rules []rbacv1.PolicyRule) {
	t.Helper()
	if err := c.awaitRights(t.Context(), config, "", rules); err != nil {
		t.Fatalf("waiting for the rights of the test: %v", err)
	}
}

// remove deletes what a test has made outside of its namespace. That the control
// plane is gone by then, as after a Kill, is no failure of the test.
func remove[T object.Object](t testing.TB, of client.Typed[T], key object.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	if err := of.Delete(ctx, key); err != nil && !client.Unreachable(err) {
		t.Errorf("removing %s: %v", key, err)
	}
}

// askAgain is how long a question about rights waits for its next turn. There is
// nothing to watch: what matters is what the authorizer has seen.
const askAgain = 10 * time.Millisecond

// awaitRights waits until each server grants the first of the rules, in a namespace or in
// all. It has seen the whole role then, and the binding. Nothing is asked where there are no
// rules.
func (c *Cluster) awaitRights(ctx context.Context, config *rest.Config, namespace string, rules []rbacv1.PolicyRule) error {
	if len(rules) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("not granted within %s", Patience))
	defer cancel()
	for _, server := range c.Servers() {
		config := rest.CopyConfig(config)
		config.Host = server
		one, err := client.New(config)
		if err != nil {
			return err
		}
		reviews := client.For[*authorizationv1.SelfSubjectAccessReview](one)
		for {
			asked := question(rules[0])
			if r := asked.Spec.ResourceAttributes; r != nil {
				r.Namespace = namespace
			}
			review, err := reviews.Create(ctx, asked)
			if err != nil {
				return fmt.Errorf("asking %s: %w", server, err)
			}
			if review.Status.Allowed {
				break
			}
			select {
			case <-time.After(askAgain):
			case <-ctx.Done():
				return fmt.Errorf("asking %s: %w: %s", server, context.Cause(ctx), review.Status.Reason)
			}
		}
	}
	return nil
}

// question asks for the first of the rights in a rule.
func question(rule rbacv1.PolicyRule) *authorizationv1.SelfSubjectAccessReview {
	first := func(of []string) string { return slices.Concat(of, []string{""})[0] }
	review := &authorizationv1.SelfSubjectAccessReview{}
	if len(rule.NonResourceURLs) > 0 {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{
			Path: rule.NonResourceURLs[0], Verb: first(rule.Verbs),
		}
		return review
	}
	resource, subresource, _ := strings.Cut(first(rule.Resources), "/")
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Group: first(rule.APIGroups), Resource: resource, Subresource: subresource,
		Name: first(rule.ResourceNames), Verb: first(rule.Verbs),
	}
	return review
}
