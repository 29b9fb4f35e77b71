// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// place is that of the object that the tests of this file send requests for.
var place = object.Key{Namespace: "ns", Name: "c"}

// clientOf returns a client of a server.
func clientOf(t *testing.T, api *fakeapi.Server) *client.Client {
	t.Helper()
	c, err := client.New(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused checks that an answer is a Status with a code and a message.
func refused(t *testing.T, err error, code int32, message string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != code || !strings.Contains(status.Status().Message, message) {
		t.Errorf("the answer is %v, want %d %q", err, code, message)
	}
}

func TestAnApplyOfAnObjectThatIsGoneCreatesNone(t *testing.T) {
	api := fakeapi.New()
	served := api.Serve(configMaps)
	_, err := client.For[*corev1.ConfigMap](clientOf(t, api)).Patch(t.Context(), place, client.Patch{
		Type: types.ApplyPatchType, Data: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"u-1"}}`),
	}, client.FieldManager("x"))
	refused(t, err, 409, "uid mismatch: the provided object specified uid u-1, and no existing object was found")
	if keys := served.Keys(); len(keys) > 0 {
		t.Errorf("the server has %v", keys)
	}
}

const (
	otherName      = "the name of the object (b) does not match the name on the URL (c)"
	noName         = "the name of the object (c based on URL) was undeterminable: name must be provided"
	otherNamespace = "the namespace of the provided object does not match the namespace sent on the request"
)

func TestAnApplyIsOfTheObjectThatItsPathNames(t *testing.T) {
	for metadata, message := range map[string]string{
		`{"name":"b"}`: otherName, `{}`: noName, `{"name":"c","namespace":"other"}`: otherNamespace,
	} {
		t.Run(metadata, func(t *testing.T) {
			api := fakeapi.New()
			served := api.Serve(configMaps)
			_, err := client.For[*corev1.ConfigMap](clientOf(t, api)).Patch(t.Context(), place, client.Patch{
				Type: types.ApplyPatchType, Data: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":` + metadata + `}`),
			}, client.FieldManager("x"))
			refused(t, err, 400, message)
			if keys := served.Keys(); len(keys) > 0 {
				t.Errorf("the server has %v", keys)
			}
		})
	}
}

func TestAPatchCannotRenameAnObject(t *testing.T) {
	for name, test := range map[string]struct {
		patch         types.PatchType
		body, message string
	}{
		"merge":                      {types.MergePatchType, `{"metadata":{"name":"b"}}`, otherName},
		"merge, the namespace":       {types.MergePatchType, `{"metadata":{"namespace":"other"}}`, otherNamespace},
		"merge, no name":             {types.MergePatchType, `{"metadata":{"name":null}}`, noName},
		"strategic merge":            {types.StrategicMergePatchType, `{"metadata":{"name":"b"}}`, otherName},
		"JSON":                       {types.JSONPatchType, `[{"op":"replace","path":"/metadata/name","value":"b"}]`, otherName},
		"apply":                      {types.ApplyPatchType, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b"}}`, otherName},
		"apply, the namespace":       {types.ApplyPatchType, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"c","namespace":"other"}}`, otherNamespace},
		"the version is old as well": {types.MergePatchType, `{"metadata":{"name":"b","resourceVersion":"1"}}`, otherName},
	} {
		t.Run(name, func(t *testing.T) {
			api := fakeapi.New()
			if err := api.Serve(deployments).Add(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}); err != nil {
				t.Fatal(err)
			}
			view := client.For[*appsv1.Deployment](clientOf(t, api)).With(client.FieldManager("x"))
			patch := client.Patch{Type: test.patch, Data: []byte(test.body)}
			_, err := view.Patch(t.Context(), place, patch)
			refused(t, err, 400, test.message)
			_, err = view.Sub("status").Patch(t.Context(), place, patch)
			refused(t, err, 400, test.message)
			if test.patch == types.MergePatchType {
				_, err = client.Sub[*autoscalingv1.Scale](view, "scale").Patch(t.Context(), place, patch)
				refused(t, err, 400, test.message)
			}
		})
	}
}

func TestAPatchWithoutANamespaceKeepsTheOneOfItsPath(t *testing.T) {
	api := fakeapi.New()
	served, clusterWide := api.Serve(configMaps), api.Serve(namespaces)
	if err := served.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}); err != nil {
		t.Fatal(err)
	}
	if err := clusterWide.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}); err != nil {
		t.Fatal(err)
	}
	patch := func(namespace string) client.Patch {
		return client.Patch{Type: types.MergePatchType, Data: []byte(`{"metadata":{"namespace":` + namespace + `,"labels":{"a":"b"}}}`)}
	}
	changed, err := client.For[*corev1.ConfigMap](clientOf(t, api)).Patch(t.Context(), place, patch("null"))
	if err != nil || changed.Namespace != "ns" || changed.Labels["a"] != "b" {
		t.Errorf("the ConfigMap is %v, %v", changed, err)
	}
	whole, err := client.For[*corev1.Namespace](clientOf(t, api)).Patch(t.Context(), object.Key{Name: "ns"}, patch(`"other"`))
	if err != nil || whole.Namespace != "" || whole.Labels["a"] != "b" {
		t.Errorf("the Namespace is %v, %v", whole, err)
	}
}
