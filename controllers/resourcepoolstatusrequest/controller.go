// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "resourcepoolstatusrequest-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// NoRules leaves DeviceTaintRules out, as Kubernetes before 1.37 does.
	NoRules bool
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourcepoolstatusrequests"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourcepoolstatusrequests/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourceclaims", "resourceslices", "devicetaintrules"}, Verbs: []string{"list", "watch"}},
	}
}

type reconciler struct {
	requests cache.SharedInformer[*resourcev1alpha3.ResourcePoolStatusRequest]
	slices   cache.SharedInformer[*resourcev1.ResourceSlice]
	byDriver cache.Index[*resourcev1.ResourceSlice]
	claims   cache.SharedInformer[*resourcev1.ResourceClaim]
	rules    *cache.SharedInformer[*resourcev1.DeviceTaintRule] // nil: they are left out
	answers  *answers
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	r := &reconciler{
		requests: cache.Informer[*resourcev1alpha3.ResourcePoolStatusRequest](h).With(client.MetadataAnswer()),
		slices:   cache.Informer[*resourcev1.ResourceSlice](h),
		claims:   cache.Informer[*resourcev1.ResourceClaim](h),
		answers:  newAnswers(),
	}
	r.byDriver = cache.NewIndex(r.slices, func(item cache.Item[*resourcev1.ResourceSlice]) ([]string, error) {
		slice, err := item.Object()
		if err != nil {
			return nil, err
		}
		return []string{slice.Spec.Driver}, nil
	})
	options := []controller.Option{
		controller.For(r.requests, predicate.Stays),
		controller.Watches(r.slices, r.waitingFor),
		controller.Reads(r.claims),
	}
	if !o.NoRules {
		rules := cache.Informer[*resourcev1.DeviceTaintRule](h)
		r.rules = &rules
		options = append(options, controller.Reads(rules))
	}
	return r.answers.Of(controller.New(Name, r.reconcile, options...)), nil
}

// waitingFor adds the requests without an answer about the driver of a slice. There are few
// requests: each goes an hour after its answer.
func (r *reconciler) waitingFor(item cache.Item[*resourcev1.ResourceSlice], add func(object.Key)) {
	slice, err := item.Object()
	if err != nil {
		return // the index has logged it
	}
	for key, item := range r.requests.All() {
		if request, err := item.Object(); err == nil && request.Status == nil && request.Spec.Driver == slice.Spec.Driver {
			add(key)
		}
	}
}

// reconcile answers one request, and deletes it when its time is over.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	request, err := r.requests.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil || request.DeletionTimestamp != nil {
		return controller.Result{}, err
	}
	now := time.Now()
	left := expiry(request).Sub(now)
	if left <= 0 {
		return controller.Result{}, r.remove(ctx, request)
	}
	if request.Status != nil {
		return controller.Result{After: left}, nil
	}
	v, err := r.viewOf(request)
	if err != nil {
		return controller.Result{}, err
	}
	status, incomplete := answer(v, now)
	if len(incomplete) > 0 {
		controller.Because(ctx, waits(request.Spec.Driver, incomplete))
		return controller.Result{After: left}, nil
	}
	next := *request
	next.Status = &status
	_, err = r.requests.UpdateStatus(ctx, &next)
	r.answers.add(request.Spec.Driver, now, err)
	if err != nil && !client.AbsentAt(err, req.Key) {
		if apierrors.IsConflict(err) {
			return controller.Result{Again: true}, nil
		}
		return controller.Result{}, fmt.Errorf("writing the status: %w", err)
	}
	return controller.Result{}, nil // the event of this write starts the run that waits
}

// remove deletes a request whose time is over.
func (r *reconciler) remove(ctx context.Context, request *resourcev1alpha3.ResourcePoolStatusRequest) error {
	err := r.requests.Delete(ctx, object.KeyOf(request), client.IfUID(request.UID))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict says that another one has its name
		return fmt.Errorf("deleting a request that is over: %w", err)
	}
	return nil
}

// viewOf collects what the answer to a request depends on.
func (r *reconciler) viewOf(request *resourcev1alpha3.ResourcePoolStatusRequest) (v view, err error) {
	v.request = request
	if v.slices, err = cache.Objects(r.byDriver.Find(request.Spec.Driver)); err != nil {
		return v, err
	}
	if v.claims, err = cache.Objects(r.claims.All()); err != nil {
		return v, err
	}
	if r.rules != nil {
		v.rules, err = cache.Objects(r.rules.All())
	}
	return v, err
}
