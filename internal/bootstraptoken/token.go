// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/cache"
)

// Namespace is where tokens are. Elsewhere their Secrets are no tokens.
const Namespace = metav1.NamespaceSystem

// Type is that of the Secrets.
// Source: k8s.io/cluster-bootstrap/token/api.
const Type corev1.SecretType = "bootstrap.kubernetes.io/token"

// Where a Secret says what, and what its name begins with.
// Source: k8s.io/cluster-bootstrap/token/api.
const (
	NamePrefix    = "bootstrap-token-"
	IDKey         = "token-id"
	SecretKey     = "token-secret"
	ExpirationKey = "expiration" // RFC 3339; a token without one does not end
	SigningKey    = "usage-bootstrap-signing"
)

// Informer returns the informer of all tokens.
func Informer(p cache.Provider) cache.SharedInformer[*corev1.Secret] {
	return cache.Informer[*corev1.Secret](p, cache.InNamespace(Namespace),
		cache.WithFields(fields.OneTermEqualSelector("type", string(Type)).String()))
}

// Left returns how long a token is still valid, 0 if it is not any more; ends is false for
// one that has no end. One whose end cannot be read is not valid.
// Source: k8s.io/cluster-bootstrap/util/secrets, GetExpiration.
func Left(secret *corev1.Secret, now time.Time) (left time.Duration, ends bool) {
	text := secret.Data[ExpirationKey]
	if len(text) == 0 {
		return 0, false
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return 0, true
	}
	return max(at.Sub(now), 0), true
}
