// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrapsigner

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/bootstraptoken"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "bootstrap-signer-controller"

// What is signed, and where signatures stand.
// Source: k8s.io/cluster-bootstrap/token/api.
const (
	kubeconfigKey   = "kubeconfig"
	signaturePrefix = "jws-kubeconfig-"
)

var clusterInfo = object.Key{Namespace: metav1.NamespacePublic, Name: "cluster-info"}

// Rights returns what the controller must be allowed to do, by namespace.
func Rights() map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{
		bootstraptoken.Namespace: {
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}},
		},
		clusterInfo.Namespace: {
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{clusterInfo.Name}, Verbs: []string{"get", "list", "watch", "update"}},
		},
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host) (*controller.Controller, error) {
	r := &reconciler{
		tokens: bootstraptoken.Informer(h),
		configMaps: cache.Informer[*corev1.ConfigMap](h, cache.InNamespace(clusterInfo.Namespace),
			cache.WithFields(fields.OneTermEqualSelector(metav1.ObjectNameField, clusterInfo.Name).String())).With(client.MetadataAnswer()),
	}
	return controller.New(Name, r.reconcile,
		controller.For(r.configMaps),
		controller.Watches(r.tokens, func(_ cache.Item[*corev1.Secret], add func(object.Key)) { add(clusterInfo) }),
	), nil
}

// Codes of the reasons why the ConfigMap is not signed.
const (
	codeNothing = "NothingToSign"
	codeNoToken = "NoSigningToken"
)

type reconciler struct {
	tokens     cache.SharedInformer[*corev1.Secret]
	configMaps cache.SharedInformer[*corev1.ConfigMap]
}

// reconcile makes the signatures those of the tokens that there are.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	configMap, err := r.configMaps.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	content, there := configMap.Data[kubeconfigKey]
	if !there {
		controller.Because(ctx, controller.Reason{
			Code: codeNothing, Text: "the ConfigMap has no {key}, so there is nothing to sign", Params: controller.With("key", kubeconfigKey), Ends: "it has one",
		})
		return controller.Result{}, nil
	}
	tokens, next, err := r.signing(time.Now())
	if err != nil {
		return controller.Result{}, err
	}
	if len(tokens) == 0 {
		controller.Because(ctx, controller.Reason{
			Code: codeNoToken, Text: "no bootstrap token may sign", Ends: "a token that may sign is created, or changed so that it may",
		})
	}
	data := signed(configMap.Data, content, tokens)
	if maps.Equal(data, configMap.Data) {
		return controller.Result{After: next}, nil
	}
	changed := configMap.DeepCopy()
	changed.Data = data
	if _, err := r.configMaps.Update(ctx, changed); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("signing configmap %s: %w", req.Key, err)
	}
	return controller.Result{After: next}, nil
}

// signing returns the tokens that sign now, and when the first of them ends, 0 if none does.
func (r *reconciler) signing(now time.Time) (tokens map[string]string, next time.Duration, err error) {
	tokens = map[string]string{}
	for _, item := range r.tokens.Snapshot().All() {
		secret, err := item.Object()
		if err != nil {
			return nil, 0, err
		}
		id, key, ok := signingToken(secret, now)
		if !ok {
			continue
		}
		tokens[id] = key
		if left, ends := bootstraptoken.Left(secret, now); ends && (next == 0 || left < next) {
			next = left
		}
	}
	return tokens, next, nil
}

// signed returns the data of the ConfigMap with the signatures of these tokens and no
// others.
func signed(data map[string]string, content string, tokens map[string]string) map[string]string {
	data = maps.Clone(data)
	maps.DeleteFunc(data, func(key, _ string) bool { return strings.HasPrefix(key, signaturePrefix) })
	for id, key := range tokens {
		data[signaturePrefix+id] = signature(content, id, key)
	}
	return data
}
