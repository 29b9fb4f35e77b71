// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestASecretThatIsBeingDeletedIsNotFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, err := keyutil.MakeEllipticPrivateKeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		server := fakeapi.New()
		secrets := server.Serve(object.Resource{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true})
		accounts := server.Serve(object.Resource{Version: "v1", Plural: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true})
		if err := accounts.Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "builder"}}); err != nil {
			t.Fatal(err)
		}
		for name, meta := range map[string]metav1.ObjectMeta{
			"held":    {DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"example.org/held"}},
			"waiting": {},
		} {
			meta.Namespace, meta.Name = "ns", name
			meta.Annotations = map[string]string{corev1.ServiceAccountNameKey: "builder"}
			if err := secrets.Add(&corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeServiceAccountToken}); err != nil {
				t.Fatal(err)
			}
		}
		managertest.Run(t, server.Config(), managertest.Making(New, Options{Workers: 5, PrivateKey: key}))
		synctest.Wait()
		if got, want := secrets.Calls(), []string{"update /api/v1/namespaces/ns/secrets/waiting"}; !slices.Equal(got, want) {
			t.Errorf("the server was asked to %q, want %q", got, want)
		}
	})
}
