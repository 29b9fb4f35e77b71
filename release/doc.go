// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Release builds what is installed: an image for clusters, and archives for people.
//
//	go run . -version V -revision COMMIT -time SECONDS image      the image alone
//	go run . -version V -revision COMMIT -time SECONDS all        the image and the archives
//
// "make image" and "make release" run it with the version and the time of the commit.
// The files are written into -out:
//
//	setpoint_V_image.tar              an OCI image layout: one index, with an image for each Linux platform
//	setpoint_V_OS_ARCH.tar.gz         the programs, completions, man pages, manifests and licences of a platform
//	setpoint_V_OS_ARCH.spdx.json      the software bill of materials of that archive, in SPDX 2.3
//	setpoint_V_sha256sums.txt         the SHA-256 sums of the other files
//
// # The control plane
//
// The archives for Linux have setpoint-controlplane beside the commands, so that
// "setpoint up" runs from an unpacked archive and nothing else. That program has 130 MB, and
// its first build for a platform takes minutes. "make release CONTROLPLANE=" leaves it out.
// The image never has it, because a cluster has a control plane already.
//
// # Reproducibility
//
// Two runs for the same commit with the same version of Go write the same bytes, on any
// machine and in any folder. Each file has the time of -time, files are in a fixed order,
// and owners and permissions do not come from the machine. The commands are linked
// statically, without paths of the machine and without symbol tables.
//
// # The image
//
// The image holds the two commands in /usr/local/bin, certificates of public authorities,
// time zones, and files that name its user. It has no shell and no package manager. Its user
// is 65532, which is not root, and its entry point is setpoint. The certificates are the
// roots that Mozilla trusts without restriction, from golang.org/x/crypto/x509roots. A root
// that Mozilla trusts for older certificates alone is left out, because a PEM file cannot
// express such a restriction.
package main
