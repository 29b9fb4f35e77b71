// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/object"
)

// watchGroups prepares what the loops need of PodGroups.
func (r *reconciler) watchGroups(h controller.Host) {
	r.groups = cache.Informer[*schedulingv1beta1.PodGroup](h)
	r.groupUsers = cache.NewIndex(r.groups, func(item cache.Item[*schedulingv1beta1.PodGroup]) (values []string, err error) {
		group, err := item.Object()
		if err != nil {
			return nil, err
		}
		for _, c := range devices.ClaimsOfGroup(group) {
			values = append(values, usesClaim(group.Namespace, c.Name), usesTemplate(group.Namespace, c.Template))
		}
		return values, nil
	})
	r.members = cache.NewIndex(r.pods, func(item cache.Item[*corev1.Pod]) ([]string, error) {
		pod, err := devices.WithClaims(item)
		if err != nil || pod == nil || devices.GroupOf(pod) == "" {
			return nil, err
		}
		return []string{pod.Namespace + "/" + devices.GroupOf(pod)}, nil
	})
}

func usesClaim(namespace, claim string) string       { return "claim " + namespace + "/" + claim }
func usesTemplate(namespace, template string) string { return "template " + namespace + "/" + template }

// podsOfGroup adds the Pods of a PodGroup that have claims.
func (r *reconciler) podsOfGroup(item cache.Item[*schedulingv1beta1.PodGroup], add func(object.Key)) {
	for key := range r.members.Find(item.Key().String()) {
		add(key)
	}
}

func (r *reconciler) groupsOfClaim(item cache.Item[*resourcev1.ResourceClaim], add func(object.Key)) {
	for key := range r.groupUsers.Find(usesClaim(item.Key().Namespace, item.Key().Name)) {
		add(key)
	}
}

func (r *reconciler) groupsOfTemplate(item cache.Item[*resourcev1.ResourceClaimTemplate], add func(object.Key)) {
	for key := range r.groupUsers.Find(usesTemplate(item.Key().Namespace, item.Key().Name)) {
		add(key)
	}
}

// claimsOfGroup adds the claims of a PodGroup.
func claimsOfGroup(item cache.Item[*schedulingv1beta1.PodGroup], add func(object.Key)) {
	group, err := item.Object()
	if err != nil {
		return // the index has logged the error
	}
	for _, c := range devices.ClaimsOfGroup(group) {
		if c.Name != "" {
			add(object.Key{Namespace: group.Namespace, Name: c.Name})
		}
	}
}

// groupGoes chooses the events by which a PodGroup is gone, and remembers it. Until then its Pods
// may need the claims.
func (r *reconciler) groupGoes(e cache.Event[*schedulingv1beta1.PodGroup]) bool {
	if e.Kind != cache.Deleted && e.Kind != cache.Replaced {
		return false
	}
	r.gone.add(e.Old.Meta().UID)
	return true
}

// groupOver reports whether a PodGroup is gone. The server answers, and unseen is set, as for a Pod in the method over.
func (r *reconciler) groupOver(ctx context.Context, namespace string, consumer resourcev1.ResourceClaimConsumerReference) (over, unseen bool, err error) {
	if r.gone.has(consumer.UID) {
		return true, false, nil
	}
	key := object.Key{Namespace: namespace, Name: consumer.Name}
	group, err := r.groups.Get(key)
	if apierrors.IsNotFound(err) || err == nil && group.UID != consumer.UID {
		unseen = true
		if group, err = r.groups.Server().Get(ctx, key); client.AbsentAt(err, key) {
			return true, false, nil
		}
	}
	if err != nil {
		return false, false, err
	}
	over = group.UID != consumer.UID
	return over, unseen && !over, nil
}

// groupView is what a decision about a PodGroup depends on. Its fields are as those of podView.
type groupView struct {
	group     *schedulingv1beta1.PodGroup
	named     map[string]*resourcev1.ResourceClaim
	owned     []*resourcev1.ResourceClaim
	templates map[string]*resourcev1.ResourceClaimTemplate
	options   Options
}

// reconcileGroup makes the claims of one PodGroup.
func (r *reconciler) reconcileGroup(ctx context.Context, req controller.Request) (controller.Result, error) {
	group, err := r.groups.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if len(req.Unseen) > 0 {
		return controller.Result{}, errUnseen
	}
	v := groupView{
		group: group, options: r.Options,
		named: map[string]*resourcev1.ResourceClaim{}, templates: map[string]*resourcev1.ResourceClaimTemplate{},
	}
	if v.owned, err = cache.Objects(r.claims.Snapshot().ControlledBy(group.Namespace, group.UID)); err != nil {
		return controller.Result{}, err
	}
	var result controller.Result
	for _, c := range devices.ClaimsOfGroup(group) {
		unseen, err := r.lookUp(ctx, group.Namespace, c, v.named, v.templates)
		if err != nil {
			return controller.Result{}, err
		}
		if unseen {
			result.After = controllers.Lagging
		}
	}
	p := decideGroup(v)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	for _, no := range p.refused {
		r.failed(ofPodGroup(group), no.entry, no.why)
	}
	got, err := r.create(ctx, ofPodGroup(group), &p)
	if len(got) > 0 {
		err = errors.Join(err, r.writeGroupStatus(ctx, group, got))
	}
	return result, err
}

// decideGroup returns what is to be done for a PodGroup with claims. It changes nothing.
func decideGroup(v groupView) podPlan {
	p := podPlan{adopted: map[string]string{}}
	if v.group.DeletionTimestamp != nil {
		return p
	}
	for _, c := range devices.ClaimsOfGroup(v.group) {
		claim := v.named[c.Name]
		switch {
		case !c.Known():
			p.refuse(c.Entry, fmt.Sprintf("checking for claim before creating it: PodGroup %s/%s, spec.resourceClaim %s: none of the supported fields are set", v.group.Namespace, v.group.Name, c.Entry))
			p.because(notSupported(c.Entry))
		case c.Skipped, c.Name != "" && claim != nil && c.IsOfGroup(claim, v.group):
		case c.Template == "":
			p.because(claimMissing(v.group.Namespace, c.Name))
		default:
			p.generate(v.options, ofPodGroup(v.group), c, v.owned, v.templates[c.Template])
		}
	}
	return p
}

// writeGroupStatus writes the names of claims into the status of a PodGroup. The names of earlier
// runs stay: an apply removes what it does not name.
func (r *reconciler) writeGroupStatus(ctx context.Context, group *schedulingv1beta1.PodGroup, got map[string]string) error {
	var all []schedulingv1beta1.PodGroupResourceClaimStatus
	for _, s := range group.Status.ResourceClaimStatuses {
		if _, again := got[s.Name]; !again {
			all = append(all, s)
		}
	}
	for entry, name := range got {
		all = append(all, schedulingv1beta1.PodGroupResourceClaimStatus{Name: entry, ResourceClaimName: &name})
	}
	slices.SortFunc(all, func(a, b schedulingv1beta1.PodGroupResourceClaimStatus) int { return cmp.Compare(a.Name, b.Name) })
	data, err := json.Marshal(map[string]any{
		"apiVersion": schedulingv1beta1.SchemeGroupVersion.String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": group.Name, "namespace": group.Namespace, "uid": group.UID}, // another one of that name is not changed
		"status":   map[string]any{"resourceClaimStatuses": all},
	})
	if err != nil {
		return err
	}
	key := object.KeyOf(group)
	patch := client.Patch{Type: types.ApplyPatchType, Data: data}
	_, err = r.groups.Sub("status").Patch(ctx, key, patch, client.FieldManager(fieldManager), client.Force(), client.MetadataAnswer())
	switch {
	case client.AbsentAt(err, key), apierrors.IsConflict(err):
		return nil // the PodGroup went meanwhile, and another one may have its name
	case err != nil:
		return fmt.Errorf("writing the names of its claims into the status of the PodGroup: %w", err)
	}
	return nil
}
