// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

// scales reads the scale of an object, changes it, and compares what is recorded with what
// the object then is.
func scales[T object.Object](t *testing.T, of client.Typed[T], key object.Key) {
	t.Helper()
	var written recorder
	ctx := client.WithRecorder(t.Context(), &written)
	scale := client.Sub[*autoscalingv1.Scale](of, "scale")
	now, err := scale.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if now.Spec.Replicas != 1 || now.Name != key.Name {
		t.Fatalf("the scale is %+v", now)
	}
	stale := now.DeepCopy()
	now.Spec.Replicas = 3
	if now, err = scale.Update(ctx, key, now); err != nil || now.Spec.Replicas != 3 {
		t.Fatalf("update: %+v, %v", now, err)
	}
	updated := written.one(t)
	stale.Spec.Replicas = 5
	if _, err = scale.Update(ctx, key, stale); !apierrors.IsConflict(err) || len(written) != 0 {
		t.Errorf("an update of an old version: %v, recorded %+v", err, written)
	}
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"replicas": 4}})
	if err != nil {
		t.Fatal(err)
	}
	if now, err = scale.Patch(ctx, key, patch); err != nil || now.Spec.Replicas != 4 {
		t.Fatalf("patch: %+v, %v", now, err)
	}
	patched := written.one(t)
	o, err := of.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if patched.UID != o.GetUID() || string(patched.Version) != o.GetResourceVersion() || patched.Key != key || patched.Unknown {
		t.Errorf("%+v is recorded of an object at %s", patched, o.GetResourceVersion())
	}
	if resource, _ := of.Resource(ctx); updated.Resource != resource || updated.Version == patched.Version || !patched.Version.AtLeast(updated.Version) {
		t.Errorf("%+v is recorded, and then %+v", updated, patched)
	}
	if _, err := scale.Get(t.Context(), object.Key{Namespace: key.Namespace, Name: "missing"}); !client.AbsentAt(err, object.Key{Name: "missing"}) {
		t.Errorf("the scale of an object that is not there: %v", err)
	}
}

func TestTheScaleOfADeployment(t *testing.T) {
	cluster := shared.Get(t)
	deployments := client.For[*appsv1.Deployment](cluster.Client)
	labels := map[string]string{"app": "a"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "a"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}},
		},
	}
	if _, err := deployments.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	scales(t, deployments, object.KeyOf(d))
}

func TestTheScaleOfACustomKind(t *testing.T) {
	cluster := shared.Get(t)
	kind := object.Resource{Group: "scales.example.com", Version: "v1", Plural: "sites", Kind: "Site", Namespaced: true}
	version := controlplanetest.CustomVersions("v1")[0]
	version["subresources"] = map[string]any{"scale": map[string]any{
		"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
	}}
	_, err := client.ForResource[*unstructured.Unstructured](cluster.Client, controlplanetest.Definitions).
		Apply(t.Context(), object.Key{Name: kind.String()}, "test", map[string]any{
			"apiVersion": controlplanetest.Definitions.APIVersion(), "kind": controlplanetest.Definitions.Kind,
			"metadata": map[string]any{"name": kind.String()},
			"spec": map[string]any{
				"group": kind.Group, "scope": "Namespaced", "versions": []any{version},
				"names": map[string]any{"plural": kind.Plural, "kind": kind.Kind, "singular": "site"},
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Undefine(t, kind) })
	cluster.AwaitServed(t, kind)
	sites := client.ForResource[*unstructured.Unstructured](cluster.Client, kind)
	key := object.Key{Namespace: cluster.Namespace(t), Name: "a"}
	_, err = sites.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name}, "spec": map[string]any{"replicas": int64(1)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	scales(t, sites, key)
}

// A PodDisruptionBudget that allows none keeps a Pod from being evicted; one that allows
// one does not, and the eviction is recorded as the delete that it is.
func TestAnEvictionHeedsADisruptionBudget(t *testing.T) {
	cluster := shared.Get(t)
	pods, budgets := client.For[*corev1.Pod](cluster.Client), client.For[*policyv1.PodDisruptionBudget](cluster.Client)
	key := object.Key{Namespace: cluster.Namespace(t), Name: "a"}
	labels := map[string]string{"app": "a"}
	budget, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "b"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	})
	if err != nil {
		t.Fatal(err)
	}
	budget.Status.ObservedGeneration = budget.Generation
	if budget, err = budgets.UpdateStatus(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "none", Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	running, err := client.MergePatch(map[string]any{"status": map[string]any{"phase": corev1.PodRunning}})
	if err != nil {
		t.Fatal(err)
	}
	var written recorder
	ctx := client.WithRecorder(t.Context(), &written)
	ran, err := pods.Sub("status").Patch(ctx, key, running)
	if err != nil || ran.Status.Phase != corev1.PodRunning {
		t.Fatalf("%v, %v", ran, err)
	}
	if w := written.one(t); string(w.Version) != ran.ResourceVersion || w.UID != pod.UID {
		t.Errorf("%+v is recorded of a patched status", w)
	}

	eviction := client.Sub[*policyv1.Eviction](pods, "eviction")
	now := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	}}
	_, err = eviction.Create(ctx, key, now)
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) || len(written) != 0 {
		t.Fatalf("%v; recorded %+v", err, written)
	}

	budget.Status.DisruptionsAllowed, budget.Status.CurrentHealthy, budget.Status.ExpectedPods = 1, 1, 1
	if _, err = budgets.UpdateStatus(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	if _, err := eviction.Create(ctx, key, now, client.DryRun()); err != nil || len(written) != 0 {
		t.Fatalf("a dry run: %v; recorded %+v", err, written)
	}
	if _, err = eviction.Create(ctx, key, now); err != nil {
		t.Fatal(err)
	}
	if w := written.one(t); w.Verb != "delete" || w.Key != key || w.UID != pod.UID || w.Unknown || w.Resource.Kind != "Pod" {
		t.Errorf("%+v is recorded", w)
	}
	if _, err := pods.Get(t.Context(), key); !client.AbsentAt(err, key) {
		t.Errorf("the Pod is still there: %v", err)
	}
	if now.Name != "" {
		t.Error("the caller's object was changed")
	}
}

func TestATokenOfAServiceAccount(t *testing.T) {
	cluster := shared.Get(t)
	accounts := client.For[*corev1.ServiceAccount](cluster.Client)
	key := object.Key{Namespace: cluster.Namespace(t), Name: "a"}
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	if err != nil {
		t.Fatal(err)
	}
	var written recorder
	granted, err := client.Sub[*authenticationv1.TokenRequest](accounts, "token").
		Create(client.WithRecorder(t.Context(), &written), key, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))},
		})
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.For[*authenticationv1.TokenReview](cluster.Client).
		Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: granted.Status.Token}})
	if err != nil || !review.Status.Authenticated || review.Status.User.UID != string(account.UID) {
		t.Errorf("the token is of %+v, %v", review, err)
	}
	if len(written) != 0 {
		t.Errorf("%+v is recorded", written)
	}
}
