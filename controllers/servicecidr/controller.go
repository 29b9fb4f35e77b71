// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidr

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name, and that of the field manager it writes conditions as.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "service-cidr-controller"

// Finalizer keeps a ServiceCIDR from being removed.
// Source: k8s.io/kubernetes/pkg/controller/servicecidrs, ServiceCIDRProtectionFinalizer.
const Finalizer = "networking.k8s.io/service-cidr-finalizer"

// grace is how long after its deletion a ServiceCIDR stays at least.
// Source: k8s.io/kubernetes/pkg/controller/servicecidrs, deletionGracePeriod.
const grace = 10 * time.Second

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many ServiceCIDRs are worked on at a time.
	Workers int
}

// kind is what ServiceCIDRs are.
var kind = object.Resource{Group: networkingv1.GroupName, Version: "v1", Plural: "servicecidrs", Kind: "ServiceCIDR"}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"servicecidrs"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"servicecidrs/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"ipaddresses"}, Verbs: []string{"list", "watch"}},
		events.Rights(),
	}
}

type reconciler struct {
	cidrs     cache.SharedInformer[*networkingv1.ServiceCIDR]
	addresses cache.SharedInformer[*networkingv1.IPAddress]
	recorder  *events.Recorder
	now       func() time.Time
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		cidrs:     cache.Informer[*networkingv1.ServiceCIDR](h).With(client.MetadataAnswer()),
		addresses: cache.Informer[*networkingv1.IPAddress](h),
		recorder:  h.Recorder(Name),
		now:       time.Now,
	}
	return controller.New(Name, r.reconcile,
		controller.For(r.cidrs),
		controller.Watches(r.cidrs, r.sharing),
		controller.Watches(r.addresses, r.holding),
		controller.Workers(o.Workers),
	), nil
}

// sharing adds the ServiceCIDRs that are being deleted and share addresses with another one:
// whether they may go depends on it.
func (r *reconciler) sharing(item cache.Item[*networkingv1.ServiceCIDR], add func(object.Key)) {
	changed, err := item.Object()
	if err != nil {
		return
	}
	for key, other := range r.cidrs.Snapshot().All() {
		if !other.Meta().Deleting() {
			continue
		}
		if cidr, err := other.Object(); err == nil && overlap(cidr, changed) {
			add(key)
		}
	}
}

// holding adds the ServiceCIDRs that are being deleted and have an address.
func (r *reconciler) holding(item cache.Item[*networkingv1.IPAddress], add func(object.Key)) {
	address, err := netip.ParseAddr(item.Key().Name)
	if err != nil {
		return
	}
	for key, other := range r.cidrs.Snapshot().All() {
		if !other.Meta().Deleting() {
			continue
		}
		if cidr, err := other.Object(); err == nil && has(cidr, address) {
			add(key)
		}
	}
}

// reconcile takes the next step of one ServiceCIDR.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	cidr, err := r.cidrs.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	var result controller.Result
	if cidr.DeletionTimestamp == nil {
		err = r.protect(ctx, cidr)
	} else if slices.Contains(cidr.Finalizers, Finalizer) {
		result, err = r.release(ctx, cidr)
	}
	if client.AbsentAt(err, req.Key) {
		return controller.Result{}, nil
	}
	return result, err
}

// protect adds the finalizer, and then says that the ServiceCIDR is ready.
func (r *reconciler) protect(ctx context.Context, cidr *networkingv1.ServiceCIDR) error {
	if _, err := finalizer.Add(ctx, r.cidrs, cidr, Finalizer); err != nil {
		return err
	}
	if err := r.setReady(ctx, cidr, ready()); err != nil {
		if !client.AbsentAt(err, object.KeyOf(cidr)) {
			r.recorder.Warning(cidr, reasonError, "SetCondition", "The ServiceCIDR Status can not be set to Ready=True")
		}
		return err
	}
	return nil
}

// release removes the finalizer of a ServiceCIDR that is being deleted, or says why it stays.
func (r *reconciler) release(ctx context.Context, cidr *networkingv1.ServiceCIDR) (controller.Result, error) {
	all, err := cache.Objects(r.cidrs.Snapshot().All())
	if err != nil {
		return controller.Result{}, err
	}
	addresses, err := cache.Objects(r.addresses.Snapshot().All())
	if err != nil {
		return controller.Result{}, err
	}
	if held := orphans(cidr, all, addresses); len(held) > 0 {
		return controller.Result{}, r.stays(ctx, cidr, held)
	}
	if left := cidr.DeletionTimestamp.Add(grace).Sub(r.now()); left > 0 {
		because(ctx, codeGrace, "API servers have {grace} to hear of the deletion", "that time", "grace", grace)
		return controller.Result{After: left}, nil
	}
	held, err := r.onServer(ctx, cidr)
	if err != nil {
		return controller.Result{}, err
	}
	if len(held) > 0 {
		return controller.Result{After: controllers.Lagging}, r.stays(ctx, cidr, held)
	}
	return controller.Result{}, finalizer.Remove(ctx, r.cidrs, cidr, Finalizer)
}

// onServer is orphans, of the ServiceCIDRs and IPAddresses that the server has.
func (r *reconciler) onServer(ctx context.Context, cidr *networkingv1.ServiceCIDR) ([]*networkingv1.IPAddress, error) {
	all, _, err := r.cidrs.Server().List(ctx, client.Selection{})
	if err != nil {
		return nil, fmt.Errorf("listing the ServiceCIDRs that may have the addresses of %s: %w", cidr.Name, err)
	}
	addresses, _, err := r.addresses.Server().List(ctx, client.Selection{Labels: networkingv1.LabelManagedBy + "=" + allocator})
	if err != nil {
		return nil, fmt.Errorf("listing the IPAddresses that may be of %s: %w", cidr.Name, err)
	}
	return orphans(cidr, all, addresses), nil
}

// stays says in the condition and in a reason which addresses hold a ServiceCIDR.
func (r *reconciler) stays(ctx context.Context, cidr *networkingv1.ServiceCIDR, held []*networkingv1.IPAddress) error {
	names := named(held)
	because(ctx, codeInUse, "it keeps the finalizer {finalizer}, because no other ServiceCIDR that is ready has {addresses}",
		"the Services go, or a ServiceCIDR with these addresses is created", "finalizer", Finalizer, "addresses", names)
	return r.setReady(ctx, cidr, terminating(names))
}
