// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrapsigner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The results are those of k8s.io/cluster-bootstrap/token/jws.
func TestASignatureHasTheBytesThatKubeadmComparesItWith(t *testing.T) {
	const header = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9"
	for _, test := range []struct{ content, key, want string }{
		{"Hello from the other side. I must have called a thousand times.", "my voice is my passcode", "VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"},
		{"", "my voice is my passcode", "7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk"},
		{"Hello from the other side. I must have called a thousand times.", "", "UfkqvDGiIFxrMnFseDj9LYJOLNrvjW8aHhF71mvvAs8"},
	} {
		if got := signature(test.content, "joshua", test.key); got != header+".."+test.want {
			t.Errorf("%q with %q: %s", test.content, test.key, got)
		}
	}
}

func TestATokenSignsIfItIsCalledAfterItselfIsValidAndMay(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*corev1.Secret)
		want   bool
	}{
		"as it should be":             {func(*corev1.Secret) {}, true},
		"with an end to come":         {func(s *corev1.Secret) { s.Data["expiration"] = []byte("2026-01-01T12:00:01Z") }, true},
		"expired":                     {func(s *corev1.Secret) { s.Data["expiration"] = []byte("2026-01-01T12:00:00Z") }, false},
		"with an end nobody can read": {func(s *corev1.Secret) { s.Data["expiration"] = []byte("never") }, false},
		"without the right":           {func(s *corev1.Secret) { delete(s.Data, "usage-bootstrap-signing") }, false},
		"with another word for it":    {func(s *corev1.Secret) { s.Data["usage-bootstrap-signing"] = []byte("yes") }, false},
		"without its public part":     {func(s *corev1.Secret) { delete(s.Data, "token-id") }, false},
		"without its secret part":     {func(s *corev1.Secret) { delete(s.Data, "token-secret") }, false},
		"called after another":        {func(s *corev1.Secret) { s.Name = "bootstrap-token-zzzzzz" }, false},
		"called otherwise":            {func(s *corev1.Secret) { s.Name = "abcdef" }, false},
		"with a public part that is too long": {func(s *corev1.Secret) {
			s.Name, s.Data["token-id"] = "bootstrap-token-abcdefg", []byte("abcdefg")
		}, false},
	} {
		secret := token("abcdef", nil)
		test.change(secret)
		if _, _, ok := signingToken(secret, noon); ok != test.want {
			t.Errorf("%s: signs %t", name, ok)
		}
	}
}

// token is a Secret that signs, with more data.
func token(id string, more map[string]string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id},
		Type:       "bootstrap.kubernetes.io/token",
		Data:       map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-signing": []byte("true")},
	}
	for key, value := range more {
		s.Data[key] = []byte(value)
	}
	return s
}
