// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/object"
)

// fieldManager is the manager of status.resourceClaimStatuses.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim.
const fieldManager = "ResourceClaimController"

// errUnseen is the error of a run that could make a claim twice.
var errUnseen = errors.New("the caches do not show the controller's own writes yet")

// reconcilePod makes the claims of one Pod, and reserves them if the Pod is bound already.
func (r *reconciler) reconcilePod(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := r.pods.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if len(req.Unseen) > 0 {
		return controller.Result{}, errUnseen
	}
	view, err := r.viewOf(ctx, pod)
	if err != nil {
		return controller.Result{}, err
	}
	p := decidePod(view)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	for _, no := range p.refused {
		r.failed(ofPod(pod), no.entry, no.why)
	}
	got, err := r.create(ctx, ofPod(pod), &p)
	if len(got) > 0 {
		err = errors.Join(err, r.writeStatus(ctx, pod, got))
	}
	again := false
	for _, to := range p.reserve {
		conflict, failure := r.reserve(ctx, to)
		again, err = again || conflict, errors.Join(err, failure)
	}
	if view.unseen && !again {
		return controller.Result{After: controllers.Lagging}, err
	}
	return controller.Result{Again: again}, err
}

// viewOf collects what a decision about a Pod depends on.
func (r *reconciler) viewOf(ctx context.Context, pod *corev1.Pod) (podView, error) {
	v := podView{
		pod: pod, options: r.Options,
		named: map[string]*resourcev1.ResourceClaim{}, templates: map[string]*resourcev1.ResourceClaimTemplate{},
	}
	var err error
	if v.owned, err = cache.Objects(r.claims.Snapshot().ControlledBy(pod.Namespace, pod.UID)); err != nil {
		return v, err
	}
	if name := devices.GroupOf(pod); name != "" && r.PodGroups {
		if v.group, err = r.groups.Get(object.Key{Namespace: pod.Namespace, Name: name}); apierrors.IsNotFound(err) {
			v.group, err = nil, nil
		}
		if err != nil {
			return v, err
		}
	}
	if v.group != nil {
		if v.shared, err = cache.Objects(r.claims.Snapshot().ControlledBy(v.group.Namespace, v.group.UID)); err != nil {
			return v, err
		}
	}
	for _, c := range devices.ClaimsOf(pod) {
		unseen, err := r.lookUp(ctx, pod.Namespace, c, v.named, v.templates)
		if err != nil {
			return v, err
		}
		v.unseen = v.unseen || unseen
	}
	return v, nil
}

// lookUp adds the claim and the template of an entry. unseen says that the server has the claim, and that the cache does not
// show it.
func (r *reconciler) lookUp(ctx context.Context, namespace string, c devices.Claim, named map[string]*resourcev1.ResourceClaim, templates map[string]*resourcev1.ResourceClaimTemplate) (unseen bool, err error) {
	if c.Name != "" {
		key := object.Key{Namespace: namespace, Name: c.Name}
		var claim *resourcev1.ResourceClaim
		if claim, unseen, err = r.namedClaim(ctx, key, c.Template != ""); err != nil {
			return false, fmt.Errorf("reading claim %s, which is named: %w", key, err)
		}
		if claim != nil {
			named[c.Name] = claim
		}
	}
	if c.Template == "" {
		return unseen, nil
	}
	template, err := r.templates.Get(object.Key{Namespace: namespace, Name: c.Template})
	if apierrors.IsNotFound(err) {
		return unseen, nil
	}
	templates[c.Template] = template
	return unseen, err
}

// namedClaim returns a claim, or nil. A claim of a template that the status names and that the cache does not show is read
// from the server, before another one is made.
func (r *reconciler) namedClaim(ctx context.Context, key object.Key, ofTemplate bool) (claim *resourcev1.ResourceClaim, unseen bool, err error) {
	claim, err = r.claims.Get(key)
	switch {
	case !apierrors.IsNotFound(err):
		return claim, false, err
	case !ofTemplate:
		return nil, false, nil
	}
	claim, err = r.claims.Server().Get(ctx, key)
	switch {
	case client.AbsentAt(err, key):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return claim, true, nil
}

// create creates the claims of a plan. It returns the names of all claims that the status of the
// owner lacks, by entry.
func (r *reconciler) create(ctx context.Context, of owner, p *podPlan) (got map[string]string, err error) {
	got = p.adopted
	for _, c := range p.create {
		made, failure := r.claims.Create(ctx, c.claim)
		r.metrics.create(c.claim, failure)
		switch {
		case failure == nil:
			got[c.entry] = made.Name
		case client.NamespaceGone(failure):
			return got, err // the owner goes too
		default:
			failure = fmt.Errorf("create ResourceClaim %s: %w", c.claim.Name, failure)
			r.failed(of, c.entry, failure.Error())
			err = errors.Join(err, failure)
		}
	}
	return got, err
}

// failed records that an entry of a Pod or PodGroup gets no claim.
func (r *reconciler) failed(of owner, entry, why string) {
	r.recorder.Warning(of.Object, "FailedResourceClaimCreation", "Create", "%sResourceClaim %s: %s", of.kind, entry, why)
}

// writeStatus writes the names of claims into the status of a Pod.
func (r *reconciler) writeStatus(ctx context.Context, pod *corev1.Pod, got map[string]string) error {
	key := object.KeyOf(pod)
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": pod.Name, "namespace": pod.Namespace, "uid": pod.UID}, // another Pod of that name is not changed
		"status":   map[string]any{"resourceClaimStatuses": statuses(pod, got)},
	})
	if err != nil {
		return err
	}
	patch := client.Patch{Type: types.ApplyPatchType, Data: data}
	_, err = r.pods.Sub("status").Patch(ctx, key, patch, client.FieldManager(fieldManager), client.Force(), client.MetadataAnswer())
	switch {
	case client.AbsentAt(err, key), apierrors.IsConflict(err):
		return nil // the Pod went meanwhile, and another one may have its name
	case err != nil:
		return fmt.Errorf("writing the names of its claims into the status of the Pod: %w", err)
	}
	return nil
}

// reserve adds a consumer to a claim. It reports a claim that has changed meanwhile.
func (r *reconciler) reserve(ctx context.Context, to reservation) (conflict bool, err error) {
	claim := to.claim
	next := claim.DeepCopy()
	next.Status.ReservedFor = append(next.Status.ReservedFor, to.to)
	_, err = r.claims.UpdateStatus(ctx, next)
	switch {
	case client.AbsentAt(err, object.KeyOf(claim)):
		return false, nil // its event starts another run
	case apierrors.IsConflict(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reserving claim %s: %w", claim.Name, err)
	}
	return false, nil
}
