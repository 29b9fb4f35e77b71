// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many StatefulSets are worked on at a time.
	Workers int
	// IgnoreMaxUnavailable replaces one Pod at a time, whatever maxUnavailable is, as upstream
	// does without the feature gate MaxUnavailableStatefulSet.
	IgnoreMaxUnavailable bool
	// ExactRevisions takes a revision for another one if its bytes differ, although it asks for
	// the same Pods, as upstream does without StatefulSetSemanticRevisionComparison.
	ExactRevisions bool
	// Recreate obeys the update strategy Recreate, as upstream does with the feature gate
	// StatefulSetRecreateStrategy.
	Recreate bool
}

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/statefulset/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "statefulset",
		Summary:  "keeps the Pods of StatefulSets with their names, claims and order",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-statefulset-syncs", &o.Workers, "how many StatefulSets statefulset-controller works on at a time").AtLeast(1),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "MaxUnavailableStatefulSet", Set: func(on bool) { o.IgnoreMaxUnavailable = !on }},
				{Name: "StatefulSetRecreateStrategy", Set: func(on bool) { o.Recreate = on }},
				{Name: "StatefulSetSemanticRevisionComparison", Set: func(on bool) { o.ExactRevisions = !on }},
			}
		},
	}, New)
}

// Rights returns what the controller must be allowed to do. The caller owns the result. Clusters
// with the admission plugin OwnerReferencesPermissionEnforcement require the rights to
// statefulsets/finalizers and pods/finalizers for owner references.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets/status", "statefulsets/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch", "create", "update"}},
		events.Rights(),
	}
}
