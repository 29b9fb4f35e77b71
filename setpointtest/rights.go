// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Restricted returns a configuration that connects as a new user with these rights in all
// namespaces. The only other rights are those that the server gives to every user it knows:
// to discover what it serves, and to ask for one's own rights. It may be changed. config is
// an administrator's, such as [Environment.Config]. The rights end with the test.
//
// The server's authorizer learns of rights by a watch; they hold when Restricted returns.
func Restricted(t testing.TB, config *rest.Config, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	roles := client.For[*rbacv1.ClusterRole](c)
	role, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test:" + prefix(t)}, Rules: rules})
	if err != nil {
		t.Fatalf("making a role for the test: %v", err)
	}
	t.Cleanup(func() { remove(t, roles, object.KeyOf(role)) })
	bindings := client.For[*rbacv1.ClusterRoleBinding](c)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	if _, err := bindings.Create(t.Context(), binding); err != nil {
		t.Fatalf("binding a role for the test: %v", err)
	}
	t.Cleanup(func() { remove(t, bindings, object.KeyOf(role)) })

	restricted := rest.CopyConfig(config)
	restricted.Impersonate = rest.ImpersonationConfig{UserName: role.Name}
	AwaitRights(t, restricted, "", rules)
	return restricted
}

// remove deletes what a test has made outside of its namespace. That the cluster is gone by
// then is no failure of the test.
func remove[T object.Object](t testing.TB, of client.Typed[T], key object.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	if err := of.Delete(ctx, key); err != nil && !client.Unreachable(err) && !apierrors.IsNotFound(err) {
		t.Errorf("removing %s: %v", key, err)
	}
}

// AwaitRights waits until the server grants the first of the rules to the user that config connects
// as, in a namespace or, where that is "", in all. Its authorizer has seen the role then, and
// the binding, if one binding to one role gives all of them. With no rules it asks nothing.
func AwaitRights(t testing.TB, config *rest.Config, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		return
	}
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	reviews := client.For[*authorizationv1.SelfSubjectAccessReview](c)
	asked := question(rules[0])
	if r := asked.Spec.ResourceAttributes; r != nil {
		r.Namespace = namespace
	}
	Eventually(t, config.Host+" grants the rights of the test", func() error {
		review, err := reviews.Create(t.Context(), asked)
		if err != nil || review.Status.Allowed {
			return err
		}
		return fmt.Errorf("it denies %+v: %s", asked.Spec, review.Status.Reason)
	})
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
