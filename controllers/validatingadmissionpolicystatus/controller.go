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
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/internal/shortlist"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "validatingadmissionpolicy-status-controller"

// fieldManager writes the status. Source:
// k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus, ControllerName.
const fieldManager = "validatingadmissionpolicy-status"

// codeNotServed is the code of the reason why a policy is checked again.
const codeNotServed = "KindsNotServed"

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
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{policies: cache.Informer[*admissionv1.ValidatingAdmissionPolicy](h), client: h.Client()}
	return controller.New(Name, r.reconcile, controller.For(r.policies), controller.Workers(o.Workers)), nil
}

// reconcile checks a policy that was not checked since its last change, or that names kinds that
// were not served.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	policy, err := r.policies.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if policy.Generation <= policy.Status.ObservedGeneration && req.Attempt == 0 {
		return controller.Result{}, nil
	}
	served, err := discovery.Ask(ctx, r.client.Discover)
	if err != nil && len(served) == 0 {
		return controller.Result{}, fmt.Errorf("reading which kinds the server serves: %w", err)
	}
	kinds, missing := kindsOf(policy, served)
	documents := schemas{client: r.client}
	matched, unknown, err := documents.with(ctx, kinds)
	if err != nil {
		return controller.Result{}, err
	}
	missing = append(missing, unknown...)
	var params *Schema
	if kind := paramsOf(policy); !kind.Empty() {
		if params, err = documents.of(ctx, kind); err != nil {
			return controller.Result{}, err
		}
		if params == nil {
			missing = append(missing, kind.GroupKind().String())
		}
	}
	warnings, err := Check(policy, matched, params)
	if err != nil {
		return controller.Result{}, controller.Terminal(err)
	}
	if err := r.apply(ctx, policy, warnings); err != nil || len(missing) == 0 {
		return controller.Result{}, err
	}
	controller.Because(ctx, controller.Reason{
		Code: codeNotServed, Text: "the expressions were not checked with all kinds that the policy matches: the server does not serve {kinds}",
		Params: controller.With("kinds", shortlist.Join(missing, 5)), Ends: "the server serves them",
	})
	return controller.Result{Again: true}, nil
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
