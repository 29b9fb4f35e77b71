// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "validatingadmissionpolicy-status-controller"

// fieldManager writes the status. Source:
// k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus, ControllerName.
const fieldManager = "validatingadmissionpolicy-status"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many policies are checked at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. The caller owns the result. Every authenticated user
// may read OpenAPI schemas.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{admissionv1.GroupName}, Resources: []string{"validatingadmissionpolicies"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{admissionv1.GroupName}, Resources: []string{"validatingadmissionpolicies/status"}, Verbs: []string{"patch"}},
	}
}

type reconciler struct {
	policies cache.SharedInformer[*admissionv1.ValidatingAdmissionPolicy]
	client   *client.Client
	served   served
	settled  settled
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{policies: cache.Informer[*admissionv1.ValidatingAdmissionPolicy](h), client: h.Client(), served: newServed(h.Client().Discover)}
	return controller.New(Name, r.reconcile, controller.For(r.policies), controller.Workers(o.Workers)), nil
}

// reconcile checks a policy that was not checked since its last change, or that names kinds that
// were not known then.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	policy, err := r.policies.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.settled.set(req.Key, false)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	checked := policy.Generation <= policy.Status.ObservedGeneration
	// The status does not say with which kinds a policy was checked, and another process may have written it: each process looks once at
	// each policy.
	first := checked && req.Attempt == 0
	if first && r.settled.has(req.Key) {
		return controller.Result{}, nil
	}
	from, err := r.served.ask(ctx, first)
	if err != nil {
		return controller.Result{}, fmt.Errorf("reading which kinds the server serves: %w", err)
	}
	kinds, u := kindsOf(policy, from)
	var ofParams []schema.GroupVersionKind
	if kind := paramsOf(policy); !kind.Empty() {
		ofParams = append(ofParams, kind)
	}
	if first && u.none() && wereServed(kinds, from.kinds) && wereServed(ofParams, from.kinds) {
		r.settled.set(req.Key, true)
		return controller.Result{}, nil
	}
	documents := schemas{client: r.client, failed: from.failed}
	matched := documents.with(ctx, kinds, &u)
	var params *Schema
	if known := documents.with(ctx, ofParams, &u); len(known) > 0 {
		params = known[0].Schema
	}
	warnings, err := Check(policy, matched, params)
	if err != nil {
		return controller.Result{}, controller.Terminal(err)
	}
	// What is known of kinds that cannot be read at present stays: after a restart, a server that is away would take its warnings with it.
	if !checked || len(u.silent) == 0 || keeps(policy.Status.TypeChecking, warnings) {
		if err := r.apply(ctx, policy, warnings); err != nil {
			return controller.Result{}, err
		}
	}
	r.settled.set(req.Key, u.none())
	return u.result(ctx)
}

// apply writes the status of a policy, if it has changed.
func (r *reconciler) apply(ctx context.Context, policy *admissionv1.ValidatingAdmissionPolicy, warnings []admissionv1.ExpressionWarning) error {
	var before []admissionv1.ExpressionWarning
	if policy.Status.TypeChecking != nil {
		before = policy.Status.TypeChecking.ExpressionWarnings
	}
	if policy.Status.ObservedGeneration == policy.Generation && slices.Equal(before, warnings) {
		return nil
	}
	typeChecking := map[string]any{}
	if len(warnings) > 0 {
		typeChecking["expressionWarnings"] = warnings
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": admissionv1.SchemeGroupVersion.String(), "kind": "ValidatingAdmissionPolicy",
		"metadata": map[string]any{"name": policy.Name, "uid": policy.UID},
		"status":   map[string]any{"observedGeneration": policy.Generation, "typeChecking": typeChecking},
	})
	if err != nil {
		return err
	}
	_, err = r.policies.Sub("status").Patch(ctx, object.KeyOf(policy), client.Patch{Type: types.ApplyPatchType, Data: data},
		client.FieldManager(fieldManager), client.Force(), client.MetadataAnswer())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of validatingadmissionpolicy %s: %w", policy.Name, err)
	}
	return nil
}
