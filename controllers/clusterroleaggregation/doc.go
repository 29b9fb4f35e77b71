// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterroleaggregation fills ClusterRoles with the rules of others.
//
// A ClusterRole that has an aggregationRule is a sum: its rules are those of all
// ClusterRoles that one of its label selectors matches. The roles "admin", "edit" and
// "view" that every cluster has are made this way, and are empty until this
// controller runs; a role with a label adds the rights on a custom kind to them.
//
// # What it watches and writes
//
// It watches ClusterRoles, all of them. Its keys are those that have an aggregationRule.
// It reconciles a sum when the sum changes, and when a role changes that its selectors
// match or matched before. It writes the rules and nothing else, by server-side apply, as
// the field manager "clusterrole-aggregation-controller".
//
// # What holds
//
//   - The rules are those of the matched roles, in the order of the selectors and,
//     for each, of the names, each rule once. A role never is part of itself.
//   - Sums of sums work: "view" is part of "edit", which is part of "admin".
//   - Rules that another client wrote into a sum are replaced. The API's documentation of
//     aggregationRule says so. Otherwise a right that no role grants would stay.
//   - Nothing is written where nothing would change.
//
// It has the right to escalate, because what it writes is more than it may do
// itself.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/clusterroleaggregation). On purpose it differs in two
// places: upstream reconciles all sums whenever any role changes, and this controller
// those that the role can be part of. And where a sum has no part any more, upstream
// leaves alone rules that another field manager wrote, and this removes them.
package clusterroleaggregation
