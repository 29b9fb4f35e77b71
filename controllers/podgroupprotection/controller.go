// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/protection"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "podgroup-protection-controller"

// Finalizer keeps a PodGroup from being removed.
// Source: k8s.io/kubernetes/pkg/apis/scheduling, PodGroupProtectionFinalizer.
const Finalizer = "scheduling.k8s.io/podgroup-protection"

// Options changes how the controller works. There is nothing to change.
type Options struct{}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{schedulingv1beta1.GroupName}, Resources: []string{"podgroups"}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, _ Options) (*controller.Controller, error) {
	groups := cache.Informer[*schedulingv1beta1.PodGroup](h)
	pods := cache.Informer[*corev1.Pod](h)
	m := members{cache.NewIndex(pods, func(pod cache.Item[*corev1.Pod]) ([]string, error) {
		group, open, err := membership(pod)
		if err != nil || !open || group.Name == "" {
			return nil, err
		}
		return []string{group.String()}, nil
	})}
	p := protection.Protection[*schedulingv1beta1.PodGroup]{
		Objects: groups, Finalizer: Finalizer, UsedBy: m.of, RemoveOnly: true, Recorder: h.Recorder(Name),
	}
	return controller.New(Name, p.Reconcile,
		controller.For(groups, isBeingDeleted),
		controller.Watches(pods, groupOf, leaves),
	), nil
}

// isBeingDeleted chooses the events of groups that are being deleted or gone. There is nothing to
// do for the others: admission adds the finalizer.
func isBeingDeleted(e cache.Event[*schedulingv1beta1.PodGroup]) bool {
	return !e.New.Exists() || e.New.Meta().Deleting()
}

// members finds the Pods of a group that have not ended.
type members struct {
	byGroup cache.Index[*corev1.Pod]
}

// of returns the Pods of a group that have not ended.
func (m members) of(_ context.Context, group *schedulingv1beta1.PodGroup) ([]string, error) {
	var pods []string
	for key := range m.byGroup.Find(object.KeyOf(group).String()) {
		pods = append(pods, "Pod "+key.Name)
	}
	slices.Sort(pods)
	return pods, nil
}
