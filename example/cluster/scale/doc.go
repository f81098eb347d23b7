// Scale simulates many volumes on many hosts, each of which stands by for the others: hosts and racks fail and come
// back, and volumes move. It tells how long volumes are unavailable, how many at once, and how unevenly hosts are
// loaded.
//
// Of Tansy it knows the steps of a takeover and what each takes (takeover); docs/design/scale.md says what the figures
// mean.
package main
