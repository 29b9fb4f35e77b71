// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package legacytokencleaner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "legacy-serviceaccount-token-cleaner-controller"

// Where the server says since when it notes uses.
// Source: k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking.
const (
	trackingConfigMap = "kube-apiserver-legacy-service-account-token-tracking"
	trackedSinceKey   = "since"
)

// interval is how often all tokens are checked. Source:
// k8s.io/kubernetes/pkg/controller/serviceaccount, DefaultCleanerSyncInterval.
const interval = 24 * time.Hour

// tokens is the key of the daily look.
type tokens struct{}

// String says it to people.
func (tokens) String() string { return "every token" }

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// CleanUpPeriod is how long a token is unused before it is made invalid, and again
	// before it is deleted. It must be more than 0.
	CleanUpPeriod time.Duration
}

// Rights returns what the controller must be allowed to do.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts", "pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{trackingConfigMap}, Verbs: []string{"get"}},
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	return newAt(h, o, time.Now)
}

// newAt is New with a clock, whose years a test does not wait for.
func newAt(h controller.Host, o Options, now func() time.Time) (controller.Runnable, error) {
	if o.CleanUpPeriod <= 0 {
		return nil, fmt.Errorf("making %s: a clean-up period of %s; want more than 0", Name, o.CleanUpPeriod)
	}
	r := &reconciler{
		secrets: cache.Informer[*corev1.Secret](h,
			cache.WithFields(fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String())).
			With(client.MetadataAnswer()),
		accounts: cache.Informer[*corev1.ServiceAccount](h),
		pods:     cache.Informer[*corev1.Pod](h),
		tracking: client.For[*corev1.ConfigMap](h.Client()),
		period:   o.CleanUpPeriod,
		now:      now,
		log:      h.Logger().With("controller", Name),
	}
	loop := controller.NewKeyed(Name, r.reconcile,
		controller.Reads(r.secrets), controller.Reads(r.accounts), controller.Reads(r.pods))
	loop.Periodically(interval, tokens{})
	return loop, nil
}

type reconciler struct {
	secrets  cache.SharedInformer[*corev1.Secret]
	accounts cache.SharedInformer[*corev1.ServiceAccount]
	pods     cache.SharedInformer[*corev1.Pod]
	tracking client.Typed[*corev1.ConfigMap]
	period   time.Duration
	now      func() time.Time
	log      *slog.Logger
}

// reconcile checks all tokens. What fails for one does not keep the others.
func (r *reconciler) reconcile(ctx context.Context, _ controller.RequestOf[tokens]) (controller.Result, error) {
	now := r.now().UTC()
	since, err := r.trackedSince(ctx)
	if err != nil {
		return controller.Result{}, fmt.Errorf("finding out since when uses of tokens are noted: %w", err)
	}
	if now.Before(since.Add(r.period)) {
		controller.Because(ctx, controller.Reason{
			Code: codeTooEarly, Normal: true, Text: "the API server notes the uses of tokens since {since}, and a token counts as unused after {period}",
			Params: controller.With("since", since.Format(time.RFC3339), "period", r.period), Ends: "that time has passed",
		})
		return controller.Result{}, nil
	}
	mounts := mounts{pods: r.pods.Snapshot(), known: map[string]map[string]bool{}}
	var failed []error
	for key, secret := range r.secrets.Snapshot().All() {
		if err := r.token(ctx, secret, &mounts, now); err != nil {
			failed = append(failed, fmt.Errorf("secret %s: %w", key, err))
		}
	}
	return controller.Result{}, errors.Join(failed...)
}

// trackedSince returns the first moment from which on each use has surely been noted:
// the server says on which day it began.
func (r *reconciler) trackedSince(ctx context.Context) (time.Time, error) {
	configMap, err := r.tracking.Get(ctx, object.Key{Namespace: metav1.NamespaceSystem, Name: trackingConfigMap})
	if err != nil {
		return time.Time{}, err
	}
	day, err := time.Parse(time.DateOnly, configMap.Data[trackedSinceKey])
	if err != nil {
		return time.Time{}, fmt.Errorf("configmap %s: %q: %w", object.KeyOf(configMap), trackedSinceKey, err)
	}
	return day.AddDate(0, 0, 1), nil
}

// token does what is due with one token.
func (r *reconciler) token(ctx context.Context, secret cache.Item[*corev1.Secret], mounts *mounts, now time.Time) error {
	meta := secret.Meta()
	unused, err := unused(meta, now, r.period)
	if err != nil {
		r.log.Warn("the label of a token with its last use cannot be read; the token is left alone", "secret", meta.Key.String(), "error", err)
		return nil
	}
	if !unused {
		return nil
	}
	annotations, err := secret.Annotations()
	if err != nil {
		return err
	}
	if generated, err := r.generated(meta.Key, annotations); err != nil || !generated {
		return err
	}
	if mounted, err := mounts.has(meta.Key); err != nil || mounted {
		if mounted {
			r.because(ctx, meta, codeMounted, "the token is unused, and a Pod mounts it", "no Pod mounts it")
		}
		return err
	}
	switch next(meta, now, r.period) {
	case mark:
		return r.mark(ctx, meta, now)
	case remove:
		return r.remove(ctx, meta)
	case leave:
		r.because(ctx, meta, codeMarked, "the token was made invalid a short time ago, and is deleted later", "the clean-up period has passed, or the label is removed")
	}
	return nil
}

// Codes of the reasons why a token is not made invalid or not deleted.
const (
	codeTooEarly = "UsesNotNotedLongEnough"
	codeMounted  = "TokenIsMounted"
	codeMarked   = "InvalidTokenIsKept"
)

// because states a reason about one token.
func (r *reconciler) because(ctx context.Context, secret object.Meta, code, text, ends string) {
	controller.Because(ctx, controller.Reason{Code: code, Text: text, Ends: ends,
		About: runs.Object{Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID}})
}

// generated reports whether the token was made automatically: its account names the
// Secret. One made by hand names the account, and not the other way.
func (r *reconciler) generated(secret object.Key, annotations map[string]string) (bool, error) {
	account, err := r.accounts.Get(object.Key{Namespace: secret.Namespace, Name: annotations[corev1.ServiceAccountNameKey]})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if uid := types.UID(annotations[corev1.ServiceAccountUIDKey]); uid != "" && uid != account.UID {
		return false, nil
	}
	return slices.ContainsFunc(account.Secrets, func(s corev1.ObjectReference) bool { return s.Name == secret.Name }), nil
}

// mark makes the token invalid. The UID in the patch is that of the Secret that was read:
// another Secret of its name is a conflict.
func (r *reconciler) mark(ctx context.Context, meta object.Meta, now time.Time) error {
	day := now.Format(time.DateOnly)
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"uid": meta.UID, "labels": map[string]string{invalidSince: day}}})
	if err != nil {
		return err
	}
	_, err = r.secrets.Patch(ctx, meta.Key, patch)
	switch {
	case err == nil:
		r.log.Info("made an unused token invalid; it is valid again without the label", "secret", meta.Key.String(), "label", invalidSince, "since", day)
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// remove deletes the Secret as it was seen.
func (r *reconciler) remove(ctx context.Context, meta object.Meta) error {
	err := r.secrets.Delete(ctx, meta.Key, client.IfUID(meta.UID), client.IfVersion(meta.Version))
	switch {
	case err == nil:
		r.log.Info("deleted an unused token", "secret", meta.Key.String(),
			"created", meta.Created, "lastUsed", meta.Labels.Get(lastUsed), "invalidSince", meta.Labels.Get(invalidSince))
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil
	}
	return err
}
