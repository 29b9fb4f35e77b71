// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package announce lets users find the manager of a cluster.
//
// A manager that leads writes where it serves its pages into a Lease, [Key], which a user of the cluster reads:
//
//	found, err := announce.Find(ctx, client)
//	pages, err := found.Client(config)
//	response, err := pages.Get(found.URL + "/debug/runs")
//
// Other managers on the library announce themselves on Leases of their own, which have a label: [NewAt] and [FindAll].
//
// The Lease has the fingerprint of the certificate that the manager serves with. A client accepts this certificate and no
// other. It shows the client certificate of its user and never sends a token there: a token would give its user's rights to
// any program that may write the Lease, and a client certificate does not. [Manager.Pages] sends the token to an address that the user has named,
// if an authority of the kubeconfig vouches for the certificate there.
package announce
