// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrapproving

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func TestARequestThatIsNotApprovedStatesTheRightsThatItsAuthorLacks(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Username: "system:node:n"}}
	for want, ways := range map[string][]way{
		"the author system:node:n may not create certificatesigningrequests/selfnodeclient or certificatesigningrequests/nodeclient": {renewal, joining},
		"the author system:node:n may not create certificatesigningrequests/nodeclient":                                              {joining},
	} {
		got := undecided(csr, ways)
		if want += " (until the author gets the right, or a user approves or denies the request)"; got.Code != codeNoRight || got.String() != want {
			t.Errorf("the reason is %s: %s, want %s", got.Code, got, want)
		}
	}
}
