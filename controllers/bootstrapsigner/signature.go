// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrapsigner

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/bootstraptoken"
)

// signature returns a JSON Web Signature without its content, HS256, made with a token. The
// same content and token always have the same one. Source:
// k8s.io/cluster-bootstrap/token/jws, whose bytes it must have: kubeadm computes the
// signature again and compares.
func signature(content, id, key string) string {
	encode := base64.RawURLEncoding.EncodeToString
	// The public part of a token has nothing in it that JSON would escape.
	header := encode([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(header + "." + encode([]byte(content))))
	return header + ".." + encode(mac.Sum(nil))
}

var tokenName = regexp.MustCompile("^" + bootstraptoken.NamePrefix + "([a-z0-9]{6})$")

// signingToken returns the two parts of a token, public and secret, if it may sign.
// Source: k8s.io/kubernetes/pkg/controller/bootstrap, validateSecretForSigning.
func signingToken(secret *corev1.Secret, now time.Time) (id, key string, ok bool) {
	name := tokenName.FindStringSubmatch(secret.Name)
	if name == nil || name[1] != string(secret.Data[bootstraptoken.IDKey]) {
		return "", "", false
	}
	if string(secret.Data[bootstraptoken.SigningKey]) != "true" || len(secret.Data[bootstraptoken.SecretKey]) == 0 {
		return "", "", false
	}
	if left, ends := bootstraptoken.Left(secret, now); ends && left == 0 {
		return "", "", false
	}
	return name[1], string(secret.Data[bootstraptoken.SecretKey]), true
}
