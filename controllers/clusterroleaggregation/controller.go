// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterroleaggregation

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Name is the controller's name, and that of the field manager it writes as.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "clusterrole-aggregation-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many ClusterRoles are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. It writes rules that
// are more than these, hence escalate. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
		Verbs: []string{"list", "watch", "patch", "escalate"},
	}}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		roles: cache.Informer[*rbacv1.ClusterRole](h).With(client.MetadataAnswer()),
	}
	r.sums = cache.NewIndex(r.roles, isSum)
	return controller.New(Name, r.reconcile,
		controller.Watches(r.roles, r.sumsWith),
		controller.Workers(o.Workers),
	), nil
}

// isSum indexes the roles with an aggregationRule.
func isSum(item cache.Item[*rbacv1.ClusterRole]) ([]string, error) {
	role, err := item.Object()
	if err != nil || role.AggregationRule == nil {
		return nil, err
	}
	return []string{""}, nil
}

// codeNoRules is the code of the reason why a role that is a sum has no rules.
const codeNoRules = "NothingToAggregate"

type reconciler struct {
	roles cache.SharedInformer[*rbacv1.ClusterRole]
	sums  cache.Index[*rbacv1.ClusterRole] // under one value
}

// sumsWith adds the sums that a role can concern: the role itself, and those that it is
// part of.
func (r *reconciler) sumsWith(part cache.Item[*rbacv1.ClusterRole], add func(object.Key)) {
	for key, item := range r.sums.Find("") {
		if key == part.Key() {
			add(key)
			continue
		}
		role, err := item.Object()
		if err != nil {
			add(key) // a run reports it
			continue
		}
		selectors, err := selectorsOf(role)
		if err != nil {
			continue // its own run has reported it
		}
		for _, selector := range selectors {
			if selector.Matches(part.Meta().Labels) {
				add(key)
				break
			}
		}
	}
}

// reconcile makes the rules of a sum what its parts say.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	snapshot := r.roles.Snapshot()
	item := snapshot.Get(req.Key)
	if !item.Exists() {
		return controller.Result{}, nil
	}
	role, err := item.Object()
	if err != nil {
		return controller.Result{}, err
	}
	if role.AggregationRule == nil {
		return controller.Result{}, nil
	}
	selectors, err := selectorsOf(role)
	if err != nil {
		return controller.Result{}, controller.Terminal(err)
	}
	var parts [][]*rbacv1.ClusterRole
	for _, selector := range selectors {
		part, err := cache.Objects(cache.Matching(snapshot.All(), selector))
		if err != nil {
			return controller.Result{}, err
		}
		parts = append(parts, part)
	}
	rules := union(role.Name, parts)
	if len(rules) == 0 {
		controller.Because(ctx, controller.Reason{
			Code: codeNoRules, Text: "no ClusterRole with rules matches the aggregationRule", Ends: "one does",
			About: runs.Object{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name, UID: role.UID},
		})
	}
	if same(rules, role.Rules) {
		return controller.Result{}, nil
	}
	if _, err := r.roles.Apply(ctx, req.Key, Name, configurationOf(role, rules), client.Force()); err != nil {
		return controller.Result{}, fmt.Errorf("applying the rules of cluster role %s: %w", role.Name, err)
	}
	return controller.Result{}, nil
}
