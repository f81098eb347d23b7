(** simplenfs (example/simplenfs) as a whole: its four procedures as transactions, what its server does with a call, and
    what its clients see, many at once and through any number of crashes: a trace of its specification, spec.s.dfy.

    A line in quotes after the name of a file stands so in that file; check.py looks. *)
From Coq.Init Require Import Byte.
From Tansy Require Export Clients.

(** *** Sequences of bytes (verified/lib/bytespec.dfy), and numbers of 64 bits in them, the lowest byte first *)
Notation byte := Init.Byte.byte.
Notation bytes := (list byte).
(* lib/bytespec.dfy Zeros: "{ if n == 0 then [] else Zeros(n-1) + [0] }" *)
Definition Zeros (n : nat) : bytes := replicate n x00.
(* lib/bytespec.dfy Splice: "{ dst[..off] + src + dst[off+|src|..] }" *)
Definition Splice (dst : bytes) (off : nat) (src : bytes) : bytes := take off dst ++ src ++ drop (off + length src) dst.
Definition byte_of (x : N) : byte := default x00 (Byte.of_N (x mod 256)).
Fixpoint Enc (n : nat) (x : N) : bytes := match n with 0 => [] | S n => byte_of x :: Enc n (x / 256)%N end.
Fixpoint Dec (b : bytes) : N := match b with [] => 0%N | c :: b => (Byte.to_N c + 256 * Dec b)%N end.
(* lib/numbers.dfy Dec64:
     "{ (Four(s[0], s[1], s[2], s[3]) + 0x1_0000_0000 * Four(s[4], s[5], s[6], s[7])) as uint64 }"
   lib/numbers.dfy Enc64: "{ Enc4(x as int % 0x1_0000_0000) + Enc4(x as int / 0x1_0000_0000) }"
   trusted/bytes.s.dfy U64At: "{ Dec64(s[off..off+8]) }" *)
Definition Enc64 (x : N) : bytes := Enc 8 x.
Definition U64At (b : bytes) (i : nat) : N := Dec (take 8 (drop i b)).

Lemma Enc_length n x : length (Enc n x) = n.
Proof. revert x. induction n as [|n IH]; intros x; simpl; [done|]. by rewrite IH. Qed.
Lemma Enc64_length x : length (Enc64 x) = 8.
Proof. apply Enc_length. Qed.
Lemma to_byte_of x : Byte.to_N (byte_of x) = (x mod 256)%N.
Proof.
  unfold byte_of. destruct (Byte.of_N (x mod 256)) as [c|] eqn:E; simpl; [by apply Byte.to_of_N|].
  apply Byte.of_N_None_iff in E. pose proof (N.mod_upper_bound x 256). lia.
Qed.
Lemma Dec_Enc n x : Dec (Enc n x) = (x mod 256 ^ N.of_nat n)%N.
Proof.
  revert x. induction n as [|n IH]; intros x; [by rewrite /= N.mod_1_r|].
  change (Dec (Enc (S n) x)) with (Byte.to_N (byte_of x) + 256 * Dec (Enc n (x / 256)))%N.
  rewrite to_byte_of IH. replace (256 ^ N.of_nat (S n))%N with (256 * 256 ^ N.of_nat n)%N.
  - by rewrite N.mod_mul_r; [| |apply N.pow_nonzero].
  - by rewrite Nat2N.inj_succ N.pow_succ_r'.
Qed.
Lemma Dec_Zeros n : Dec (Zeros n) = 0%N.
Proof. induction n as [|n IH]; [done|]. change (Dec (Zeros (S n))) with (0 + 256 * Dec (Zeros n))%N. by rewrite IH. Qed.

(** What is where in such a sequence. *)
Lemma take_at (l : bytes) n i : take n l !! i = if decide (i < n) then l !! i else None.
Proof. case_decide; [by apply lookup_take|apply lookup_take_ge; lia]. Qed.
Lemma app_at (l k : bytes) i : (l ++ k) !! i = if decide (i < length l) then l !! i else k !! (i - length l).
Proof. case_decide; [by apply lookup_app_l|apply lookup_app_r; lia]. Qed.
Lemma Zeros_at n i : Zeros n !! i = if decide (i < n) then Some x00 else None.
Proof. case_decide; [by apply lookup_replicate_2|]. apply lookup_ge_None_2. rewrite replicate_length. lia. Qed.
Lemma Splice_at d off s i : off + length s ≤ length d →
  Splice d off s !! i = if decide (i < off) then d !! i else if decide (i < off + length s) then s !! (i - off) else d
    !! i.
Proof.
  intros H. unfold Splice. rewrite app_at take_length_le; [|lia]. rewrite take_at app_at lookup_drop.
  repeat case_decide; try lia; try done. f_equal. lia.
Qed.
Lemma Splice_length d off s : off + length s ≤ length d → length (Splice d off s) = length d.
Proof. intros H. unfold Splice. rewrite !app_length take_length drop_length. lia. Qed.
Lemma beyond (l : bytes) i : length l ≤ i → l !! i = None.
Proof. apply lookup_ge_None_2. Qed.

(** *** The specification (example/simplenfs/spec.s.dfy) *)
Module Spec.
(* example/simplenfs/spec.s.dfy FILES: "const FILES: uint64 := 16" *)
Definition FILES : nat := 16.
(* example/simplenfs/spec.s.dfy MAX: "const MAX: uint64 := 4096" *)
Definition MAX : nat := N.to_nat 4096.
Global Opaque MAX.
(* example/simplenfs/spec.s.dfy OK: "const OK: uint32 := 0"
   example/simplenfs/spec.s.dfy FBIG: "const FBIG: uint32 := 27"
   example/simplenfs/spec.s.dfy STALE: "const STALE: uint32 := 70" *)
Definition OK : nat := 0.
Definition FBIG : nat := 27.
Definition STALE : nat := 70.

(* example/simplenfs/spec.s.dfy File: "datatype File = File(bytes: seq<byte>, mtime: uint64)" *)
Record File := MkFile { contents : bytes; mtime : N }.
(* example/simplenfs/spec.s.dfy State: "type State = seq<File>" *)
Definition State := list File.
(* example/simplenfs/spec.s.dfy Possible:
     "predicate Possible(s: State) { |s| == FILES as int && forall f | 0 <= f < |s| :: |s[f].bytes| <= MAX as int }" *)
Definition Possible (s : State) : Prop := length s = FILES ∧ ∀ f x, s !! f = Some x → length (contents x) ≤ MAX.
(* example/simplenfs/spec.s.dfy New:
     "predicate New(s: State) { |s| == FILES as int && forall f | 0 <= f < |s| :: s[f] == File([], 0) }" *)
Definition New (s : State) : Prop := length s = FILES ∧ ∀ f x, s !! f = Some x → x = MkFile [] 0.

(* example/simplenfs/spec.s.dfy Getattr: "if f >= FILES then st == STALE"
   example/simplenfs/spec.s.dfy Getattr: "else st == OK && size as int == |s[f].bytes| && mtime == s[f].mtime" *)
Definition Getattr (s : State) (f st size : nat) (time : N) : Prop :=
  if decide (FILES ≤ f) then st = STALE
  else ∃ x, s !! f = Some x ∧ st = OK ∧ size = length (contents x) ∧ time = mtime x.

(* example/simplenfs/spec.s.dfy Part:
     "{ if off >= |b| then [] else if count >= |b| - off then b[off..] else b[off..off+count] }" *)
Definition Part (b : bytes) (off count : nat) : bytes :=
  if decide (length b ≤ off) then [] else if decide (length b - off ≤ count) then drop off b else take count (drop off
    b).
(* example/simplenfs/spec.s.dfy Read: "if f >= FILES then st == STALE"
   example/simplenfs/spec.s.dfy Read: "else st == OK && data == Part(s[f].bytes, off as int, count as int) &&"
   example/simplenfs/spec.s.dfy Read: "(eof <==> off as int + |data| >= |s[f].bytes|)" *)
Definition Read (s : State) (f off count st : nat) (data : bytes) (eof : bool) : Prop :=
  if decide (FILES ≤ f) then st = STALE
  else ∃ x, s !! f = Some x ∧ st = OK ∧ data = Part (contents x) off count ∧
    (eof = true ↔ length (contents x) ≤ off + length data).

(* example/simplenfs/spec.s.dfy Resized:
     "function Resized(b: seq<byte>, size: nat): seq<byte> { if size <= |b| then b[..size] else b + Zeros(size - |b|) }" *)
Definition Resized (b : bytes) (size : nat) : bytes :=
  if decide (size ≤ length b) then take size b else b ++ Zeros (size - length b).
(* example/simplenfs/spec.s.dfy Laid:
     "{ Splice(if off + |data| > |b| then Resized(b, off + |data|) else b, off, data) }" *)
Definition Laid (b : bytes) (off : nat) (data : bytes) : bytes :=
  Splice (if decide (length b < off + length data) then Resized b (off + length data) else b) off data.
(* example/simplenfs/spec.s.dfy Write: "if f >= FILES then st == STALE && s' == s"
   example/simplenfs/spec.s.dfy Write: "else if off as int + |data| > MAX as int then st == FBIG && s' == s"
   example/simplenfs/spec.s.dfy Write: "else if data == [] then st == OK && s' == s"
   example/simplenfs/spec.s.dfy Write:
     "else st == OK && s' == s[f as int := File(Laid(s[f].bytes, off as int, data), now)]" *)
Definition Write (s : State) (f off : nat) (data : bytes) (now : N) (st : nat) (s' : State) : Prop :=
  if decide (FILES ≤ f) then st = STALE ∧ s' = s
  else if decide (MAX < off + length data) then st = FBIG ∧ s' = s
  else if decide (length data = 0) then st = OK ∧ s' = s
  else ∃ x, s !! f = Some x ∧ st = OK ∧ s' = <[f := MkFile (Laid (contents x) off data) now]> s.

(* example/simplenfs/spec.s.dfy Setattr: "if f >= FILES then st == STALE && s' == s"
   example/simplenfs/spec.s.dfy Setattr: "else if size > MAX then st == FBIG && s' == s"
   example/simplenfs/spec.s.dfy Setattr:
     "else st == OK && s' == s[f as int := File(Resized(s[f].bytes, size as int), now)]" *)
Definition Setattr (s : State) (f size : nat) (now : N) (st : nat) (s' : State) : Prop :=
  if decide (FILES ≤ f) then st = STALE ∧ s' = s
  else if decide (MAX < size) then st = FBIG ∧ s' = s
  else ∃ x, s !! f = Some x ∧ st = OK ∧ s' = <[f := MkFile (Resized (contents x) size) now]> s.
End Spec.
Import Spec.
(** The times that there are. *)
Definition Time (now : N) : Prop := (now < 2 ^ 64)%N.
Lemma MAX_is : N.of_nat MAX = 4096%N.
Proof. Transparent MAX. unfold MAX. by rewrite N2Nat.id. Qed.
Global Opaque MAX.

(** *** A volume, and its state (simplenfs.dfy) *)
(** Each file has two objects, which have numbers here. *)
Definition meta (f : nat) : key := f.
Definition block (f : nat) : key := FILES + f.
Definition META : nat := N.to_nat 256.
Lemma META_is : N.of_nat META = 256%N.
Proof. unfold META. by rewrite N2Nat.id. Qed.
Global Opaque META.
Notation Objects := (gmap key bytes).
Implicit Types (d : Objects) (m b : bytes) (f off size : nat) (now : N).

(* example/simplenfs/simplenfs.dfy Meta:
     "{ var a := Addr(first, MetaOff(f)); if a in d && d[a].ObjData? then d[a].bytes else [] }"
   example/simplenfs/simplenfs.dfy Data:
     "{ var a := Addr(DataBlk(first, f), 0); if a in d && d[a].ObjData? then d[a].bytes else [] }" *)
Definition Size m : nat := N.to_nat (U64At m 0).
Definition Meta d f : bytes := default [] (d !! meta f).
Definition Data d f : bytes := default [] (d !! block f).
(* example/simplenfs/simplenfs.dfy Sound:
     "{ |Meta(first, d, f)| == 256 && |Data(first, d, f)| == 4096 && U64At(Meta(first, d, f), 0) <= MAX }" *)
Definition Sound d f : Prop := length (Meta d f) = META ∧ length (Data d f) = MAX ∧ Size (Meta d f) ≤ MAX.
(* example/simplenfs/simplenfs.dfy Inv:
     "Fits(first) && forall f: uint64 {:trigger Sound(first, d, f)} | f < FILES :: Sound(first, d, f)" *)
Definition Inv d : Prop := ∀ f, f < FILES → Sound d f.
(* example/simplenfs/simplenfs.dfy FileOf:
     "{ File(Data(first, d, f)[..U64At(Meta(first, d, f), 0)], U64At(Meta(first, d, f), 8)) }" *)
Definition FileOf d f : File := MkFile (take (Size (Meta d f)) (Data d f)) (U64At (Meta d f) 8).
(* example/simplenfs/simplenfs.dfy Files:
     "{ if n == 0 then [] else assert Sound(first, d, n - 1); Files(first, d, n - 1) + [FileOf(first, d, n - 1)] }"
   example/simplenfs/simplenfs.dfy Abs: "{ Files(first, d, FILES) }" *)
Definition Abs d : State := FileOf d <$> seq 0 FILES.

Lemma Abs_length d : length (Abs d) = FILES.
Proof. unfold Abs. by rewrite fmap_length seq_length. Qed.
Lemma Abs_at d f : f < FILES → Abs d !! f = Some (FileOf d f).
Proof. intros H. unfold Abs. rewrite list_lookup_fmap lookup_seq_lt; [done|exact H]. Qed.
Lemma FileOf_length d f : Sound d f → length (contents (FileOf d f)) = Size (Meta d f).
Proof. intros (_&H&?). simpl. rewrite take_length_le; lia. Qed.
Lemma Abs_possible d : Inv d → Possible (Abs d).
Proof.
  intros HI. split; [apply Abs_length|]. intros f x Hx.
  assert (f < FILES) as Hf by (apply lookup_lt_Some in Hx; by rewrite Abs_length in Hx).
  rewrite (Abs_at d f Hf) in Hx. injection Hx as <-. rewrite FileOf_length; [|by apply HI]. by apply HI.
Qed.
Lemma Abs_same d d' : (∀ f, f < FILES → Meta d' f = Meta d f ∧ Data d' f = Data d f) → Inv d → Inv d' ∧ Abs d' = Abs d.
Proof.
  intros HS HI. split.
  - intros f Hf. destruct (HS f Hf) as [E1 E2]. unfold Sound. rewrite E1 E2. by apply HI.
  - apply list_fmap_ext. intros i f Hi. apply lookup_seq in Hi as [-> Hi]. destruct (HS i Hi) as [E1 E2].
    unfold FileOf. simpl. by rewrite E1 E2.
Qed.

(** *** The procedures (simplenfs.dfy), statement by statement *)
Fixpoint bind {A B} (p : program bytes A) (k : A → program bytes B) : program bytes B :=
  match p with
  | Ret r => k r
  | Programs.Read a next => Programs.Read a (λ o, bind (next o) k)
  | Programs.Write a o next => Programs.Write a o (bind next k)
  | Choose next => Choose (λ n, bind (next n) k)
  end.
Global Instance program_bind : MBind (program bytes) := λ A B k p, bind p k.
Lemma run_bind {A B} (p : program bytes A) (k : A → program bytes B) d r d' : run (p ≫= k) d r d' →
  ∃ a d1, run p d a d1 ∧ run (k a) d1 r d'.
Proof.
  revert d. unfold mbind, program_bind. induction p as [a|x next IH|x o next IH|next IH]; intros d Hr; simpl in Hr.
  - exists a, d. split; [constructor|done].
  - inversion Hr as [|? o ? ? ? ? Ho Hn| |]; subst. destruct (IH _ _ Hn) as (a&d1&?&?). exists a, d1.
    split; [by econstructor|done].
  - inversion Hr as [| |? ? ? ? ? ? Hn|]; subst. destruct (IH _ Hn) as (a&d1&?&?). exists a, d1.
    split; [by constructor|done].
  - inversion Hr as [| | |n ? ? ? ? Hn]; subst. destruct (IH _ _ Hn) as (a&d1&?&?). exists a, d1.
    split; [by econstructor|done].
Qed.
Definition read (k : key) : program bytes bytes := Programs.Read k Ret.
Definition write (k : key) (o : bytes) : program bytes unit := Programs.Write k o (Ret tt).
Lemma run_ret {A} (a r : A) d d' : run (Ret a : program bytes A) d r d' → r = a ∧ d' = d.
Proof. by inversion 1. Qed.
Lemma run_read k d o d' : run (read k) d o d' → d !! k = Some o ∧ d' = d.
Proof. inversion 1 as [|? ? ? ? ? ? Ho Hn| |]; subst. by apply run_ret in Hn as [-> ->]. Qed.
Lemma run_write k o d u d' : run (write k o) d u d' → d' = <[k := o]> d.
Proof. inversion 1 as [| |? ? ? ? ? ? Hn|]; subst. by apply run_ret in Hn as [_ ->]. Qed.
Lemma run_choose {A} (next : nat → program bytes A) d r d' : run (Choose next) d r d' → ∃ n, run (next n) d r d'.
Proof. inversion 1; subst. eauto. Qed.

(* example/simplenfs/simplenfs.dfy Getattr: "if f >= FILES { return STALE, 0, 0; }"
   example/simplenfs/simplenfs.dfy Getattr: "var m := t.ReadInode(first, MetaOff(f), false);"
   example/simplenfs/simplenfs.dfy Getattr: "return OK, m.U64(0), m.U64(8);"
   example/simplenfs/simplenfs.dfy Getattr:
     "ensures SimpleSpec.Getattr(Abs(first, t.volume.data), f, st, size, mtime)" *)
Definition getattr f : program bytes (nat * nat * N) :=
  if decide (FILES ≤ f) then Ret (STALE, 0, 0%N) else
  m ← read (meta f); Ret (OK, Size m, U64At m 8).

(* example/simplenfs/simplenfs.dfy Read: "if f >= FILES { data := NewBytes(0); return STALE, data, false; }"
   example/simplenfs/simplenfs.dfy Read: "var m := t.ReadInode(first, MetaOff(f), false);"
   example/simplenfs/simplenfs.dfy Read: "var size := m.U64(0);"
   example/simplenfs/simplenfs.dfy Read:
     "var n := if off >= size then 0 else if count >= size - off then size - off else count;"
   example/simplenfs/simplenfs.dfy Read: "data := NewBytes(n);"
   example/simplenfs/simplenfs.dfy Read: "if n > 0 {"
   example/simplenfs/simplenfs.dfy Read: "var b := t.ReadBlock(DataBlk(first, f), false);"
   example/simplenfs/simplenfs.dfy Read: "data.CopyBlk(0, b, off, n);"
   example/simplenfs/simplenfs.dfy Read: "return OK, data, off >= size || n == size - off;"
   example/simplenfs/simplenfs.dfy Read:
     "ensures fresh(data) && SimpleSpec.Read(Abs(first, t.volume.data), f, off, count, st, data.data, eof)" *)
Definition read_file f off count : program bytes (nat * bytes * bool) :=
  if decide (FILES ≤ f) then Ret (STALE, [], false) else
  m ← read (meta f);
  let size := Size m in
  let n := if decide (size ≤ off) then 0 else if decide (size - off ≤ count) then size - off else count in
  data ← (if decide (0 < n) then b ← read (block f); Ret (take n (drop off b)) else Ret (Zeros n));
  Ret (OK, data, bool_decide (size ≤ off ∨ n = size - off)).

(* example/simplenfs/simplenfs.dfy Grown: "m := t.ReadInode(first, MetaOff(f), true);"
   example/simplenfs/simplenfs.dfy Grown: "size := m.U64(0);"
   example/simplenfs/simplenfs.dfy Grown: "var v := t.ReadBlock(DataBlk(first, f), true);"
   example/simplenfs/simplenfs.dfy Grown: "b := v.Thaw();"
   example/simplenfs/simplenfs.dfy Grown: "if size < end {"
   example/simplenfs/simplenfs.dfy Grown: "var z := NewBytes(end - size);"
   example/simplenfs/simplenfs.dfy Grown: "b.CopyFrom(size, z, 0, end - size);" *)
Definition grown f (stop : nat) : program bytes (bytes * bytes * nat) :=
  m ← read (meta f);
  let size := Size m in
  b ← read (block f);
  Ret (if decide (size < stop) then Splice b size (Zeros (stop - size)) else b, m, size).
(* example/simplenfs/simplenfs.dfy Put: "m.PutU64(0, size);"
   example/simplenfs/simplenfs.dfy Put: "m.PutU64(8, now);"
   example/simplenfs/simplenfs.dfy Put: "t.WriteInode(first, MetaOff(f), m);"
   example/simplenfs/simplenfs.dfy Put: "t.WriteBlock(DataBlk(first, f), b);" *)
Definition put f b m size now : program bytes unit :=
  _ ← write (meta f) (Splice (Splice m 0 (Enc64 (N.of_nat size))) 8 (Enc64 now));
  write (block f) b.

(* example/simplenfs/simplenfs.dfy Write: "if f >= FILES { return STALE; }"
   example/simplenfs/simplenfs.dfy Write: "var n := data.Len();"
   example/simplenfs/simplenfs.dfy Write: "if n > MAX || off > MAX - n { return FBIG; }"
   example/simplenfs/simplenfs.dfy Write: "if n == 0 { return OK; }"
   example/simplenfs/simplenfs.dfy Write: "var b, m, size := Grown(t, first, f, off);"
   example/simplenfs/simplenfs.dfy Write: "b.CopyFrom(off, data, 0, n);"
   example/simplenfs/simplenfs.dfy Write: "var end := if size > off + n then size else off + n;"
   example/simplenfs/simplenfs.dfy Write: "Put(t, first, f, b, m, end, now);"
   example/simplenfs/simplenfs.dfy Write: "return OK;"
   example/simplenfs/simplenfs.dfy Write:
     "ensures SimpleSpec.Write(old(Abs(first, t.volume.data)), f, off, data.data, now, st, Abs(first, t.volume.data))"
       *)
Definition write_file f off (data : bytes) now : program bytes nat :=
  if decide (FILES ≤ f) then Ret STALE else
  let n := length data in
  if decide (MAX < n ∨ MAX - n < off) then Ret FBIG else
  if decide (n = 0) then Ret OK else
  g ← grown f off;
  let '(b, m, size) := g in
  _ ← put f (Splice b off data) m (if decide (off + n < size) then size else off + n) now;
  Ret OK.

(* example/simplenfs/simplenfs.dfy Setattr: "if f >= FILES { return STALE; }"
   example/simplenfs/simplenfs.dfy Setattr: "if size > MAX { return FBIG; }"
   example/simplenfs/simplenfs.dfy Setattr: "var b, m, was := Grown(t, first, f, size);"
   example/simplenfs/simplenfs.dfy Setattr: "Put(t, first, f, b, m, size, now);"
   example/simplenfs/simplenfs.dfy Setattr: "return OK;"
   example/simplenfs/simplenfs.dfy Setattr:
     "ensures SimpleSpec.Setattr(old(Abs(first, t.volume.data)), f, size, now, st, Abs(first, t.volume.data))" *)
Definition setattr f size now : program bytes nat :=
  if decide (FILES ≤ f) then Ret STALE else
  if decide (MAX < size) then Ret FBIG else
  g ← grown f size;
  let '(b, m, was) := g in
  _ ← put f b m size now;
  Ret OK.

(** *** That they do as the specification says, as simplenfs.dfy proves, too *)
Lemma run_getattr f d st size time d' : Inv d → run (getattr f) d (st, size, time) d' →
  d' = d ∧ Getattr (Abs d) f st size time.
Proof.
  intros HI Hr. unfold getattr in Hr. unfold Getattr. case_decide as Hf.
  - by apply run_ret in Hr as [[= -> -> ->] ->].
  - apply run_bind in Hr as (m&d1&[Hm ->]%run_read&[[= -> -> ->] ->]%run_ret). split; [done|].
    assert (Meta d f = m) as <- by (unfold Meta; by rewrite Hm).
    exists (FileOf d f). split; [apply Abs_at; lia|]. split_and!; [done| |done]. rewrite FileOf_length; [done|].
    apply HI. lia.
Qed.

Lemma run_read_file f off count d st data eof d' : Inv d → run (read_file f off count) d (st, data, eof) d' →
  d' = d ∧ Read (Abs d) f off count st data eof.
Proof.
  intros HI Hr. unfold read_file in Hr. unfold Read. case_decide as Hf.
  { by apply run_ret in Hr as [[= -> -> ->] ->]. }
  assert (Sound d f) as HS by (apply HI; lia). pose proof HS as (_&Hb&Hs).
  apply run_bind in Hr as (m&d1&[Hm ->]%run_read&Hr). assert (Meta d f = m) as Em by (unfold Meta; by rewrite Hm).
  cbv beta zeta in Hr. set (n := if decide (Size m ≤ off) then 0 else if decide (Size m - off ≤ count) then Size m -
    off else count) in *.
  apply run_bind in Hr as (x&d1&Hx&[[= -> -> ->] ->]%run_ret).
  assert (d1 = d ∧ x = take n (drop off (Data d f))) as [-> ->].
  { case_decide as Hn.
    - apply run_bind in Hx as (b&d2&[Hblk ->]%run_read&[-> ->]%run_ret). unfold Data. by rewrite Hblk.
    - apply run_ret in Hx as [-> ->]. by replace n with 0 by lia. }
  split; [done|]. exists (FileOf d f). split; [apply Abs_at; lia|]. split; [done|].
  rewrite FileOf_length; [|done]. rewrite Em in Hs |- *. split.
  - unfold Part. rewrite FileOf_length; [|done]. rewrite Em. simpl. rewrite Em.
    apply list_eq. intros i. rewrite take_at lookup_drop.
    subst n. repeat case_decide; rewrite ?take_at ?lookup_drop ?take_at; repeat case_decide; try done; try lia.
  - rewrite take_length drop_length Hb. subst n. rewrite bool_decide_eq_true. repeat case_decide; lia.
Qed.

Lemma run_grown f stop d b m size d' : Inv d → f < FILES → stop ≤ MAX → run (grown f stop) d (b, m, size) d' →
  d' = d ∧ m = Meta d f ∧ size = Size m ∧ size ≤ MAX ∧ length m = META ∧ length b = MAX ∧
  (∀ i, i < size → b !! i = Data d f !! i) ∧ (∀ i, size ≤ i < stop → b !! i = Some x00).
Proof.
  intros HI Hf Hstop Hr. pose proof (HI f Hf) as (Hm&Hb&Hs). unfold grown in Hr.
  apply run_bind in Hr as (m'&d1&[Hm' ->]%run_read&Hr). cbv beta zeta in Hr.
  apply run_bind in Hr as (b'&d1&[Hb' ->]%run_read&[[= -> -> ->] ->]%run_ret).
  assert (m' = Meta d f) as -> by (unfold Meta; by rewrite Hm').
  assert (b' = Data d f) as -> by (unfold Data; by rewrite Hb').
  split; [done|]. split; [done|]. split; [done|]. split; [done|]. split; [done|]. case_decide as Hlt.
  - assert (Size (Meta d f) + length (Zeros (stop - Size (Meta d f))) ≤ length (Data d f)) as Hfits
      by (unfold Zeros; rewrite replicate_length; lia).
    split; [by rewrite Splice_length|]. unfold Zeros in Hfits. rewrite replicate_length in Hfits.
    split; intros i Hi; (rewrite Splice_at; unfold Zeros; rewrite ?replicate_length; [|lia]); repeat case_decide;
      try lia; try done.
    apply lookup_replicate_2. lia.
  - split; [done|]. split; [done|]. intros. lia.
Qed.

(** What the object of size and time then says. *)
Lemma put_meta m size now : length m = META → size ≤ MAX → Time now →
  let m' := Splice (Splice m 0 (Enc64 (N.of_nat size))) 8 (Enc64 now) in
  length m' = META ∧ Size m' = size ∧ U64At m' 8 = now.
Proof.
  intros Hm Hs Hnow m'. pose proof META_is. pose proof MAX_is.
  assert (length (Splice m 0 (Enc64 (N.of_nat size))) = META) as H1 by (rewrite Splice_length; rewrite ?Enc64_length;
    lia).
  assert (length m' = META) as H2 by (subst m'; rewrite Splice_length; rewrite ?Enc64_length; lia).
  assert (take 8 (drop 0 m') = Enc64 (N.of_nat size)) as E0.
  { apply list_eq. intros i. rewrite drop_0 take_at. subst m'. destruct (decide (i < 8)).
    - rewrite Splice_at; rewrite ?Enc64_length; [|lia]. destruct (decide (i < 8)); [|lia].
      rewrite Splice_at; rewrite ?Enc64_length; [|lia]. repeat case_decide; try lia; f_equal; lia.
    - done. }
  assert (take 8 (drop 8 m') = Enc64 now) as E8.
  { apply list_eq. intros i. rewrite take_at lookup_drop. subst m'. destruct (decide (i < 8)).
    - rewrite Splice_at; rewrite ?Enc64_length; [|lia]. repeat case_decide; try lia; f_equal; lia.
    - done. }
  split; [done|]. unfold Size, U64At, Time in *. rewrite E0 E8 !Dec_Enc. change (256 ^ N.of_nat 8)%N with (2 ^ 64)%N.
  rewrite (N.mod_small now); [|done]. rewrite N.mod_small; [|lia]. by rewrite Nat2N.id.
Qed.

Lemma run_put f b m size now d u d' : Inv d → f < FILES → size ≤ MAX → Time now → length b = MAX → length m = META →
  run (put f b m size now) d u d' → Inv d' ∧ Abs d' = <[f := MkFile (take size b) now]> (Abs d).
Proof.
  intros HI Hf Hs Hnow Hb Hm Hr. destruct (put_meta m size now Hm Hs Hnow) as (L1&L2&L3). unfold put in Hr.
  set (m' := Splice (Splice m 0 (Enc64 (N.of_nat size))) 8 (Enc64 now)) in *.
  apply run_bind in Hr as (v&d1&->%run_write&->%run_write).
  set (d' := <[block f := b]> (<[meta f := m']> d)).
  assert (Meta d' f = m' ∧ Data d' f = b) as [E1 E2].
  { unfold Meta, Data, d'. rewrite lookup_insert_ne; [|unfold meta, block; lia]. by rewrite !lookup_insert. }
  assert (∀ g, g < FILES → g ≠ f → Meta d' g = Meta d g ∧ Data d' g = Data d g) as Hother.
  { intros g Hg Hne. unfold Meta, Data, d', meta, block. rewrite !lookup_insert_ne; [done|lia..]. }
  split.
  - intros g Hg. destruct (decide (g = f)) as [->|Hne].
    + unfold Sound. rewrite E1 E2. split_and!; [done..|]. by rewrite L2.
    + destruct (Hother g Hg Hne) as [F1 F2]. unfold Sound. rewrite F1 F2. by apply HI.
  - apply list_eq. intros g. destruct (decide (g < FILES)) as [Hg|Hg].
    + destruct (decide (g = f)) as [->|Hne].
      * rewrite list_lookup_insert; [|by rewrite Abs_length]. rewrite (Abs_at d' f Hf). unfold FileOf.
        by rewrite E1 E2 L2 L3.
      * rewrite list_lookup_insert_ne; [|done]. rewrite !Abs_at; [|done..]. destruct (Hother g Hg Hne) as [F1 F2].
        unfold FileOf. by rewrite F1 F2.
    + rewrite !lookup_ge_None_2; [done|rewrite ?insert_length Abs_length; lia..].
Qed.

Lemma run_write_file f off data now d st d' : Inv d → Time now → run (write_file f off data now) d st d' →
  Inv d' ∧ Write (Abs d) f off data now st (Abs d').
Proof.
  intros HI Hnow Hr. unfold write_file in Hr. unfold Write. cbv beta zeta in Hr. case_decide as Hf.
  { by apply run_ret in Hr as [-> ->]. }
  case_decide as Hbig.
  { apply run_ret in Hr as [-> ->]. split; [done|]. by rewrite decide_True; [|lia]. }
  rewrite decide_False; [|lia]. case_decide as Hn.
  { by apply run_ret in Hr as [-> ->]. }
  apply run_bind in Hr as ([[b m] size]&d1&Hg&Hr).
  apply run_grown in Hg as (->&->&Hsize&Hs&Lm&Lb&Hold&Hzero); [|done|lia|lia].
  apply run_bind in Hr as (u&d1&Hp&[-> ->]%run_ret).
  apply run_put in Hp as [HI' HA]; [|done|lia|case_decide; lia|done|by rewrite Splice_length; lia|done].
  split; [done|]. exists (FileOf d f). split; [apply Abs_at; lia|]. split; [done|]. rewrite HA. f_equal. f_equal.
  pose proof (HI f ltac:(lia)) as HS. pose proof HS as (_&HLb&_). apply list_eq. intros i.
  unfold Laid, Resized. rewrite FileOf_length; [|done]. simpl. rewrite -Hsize.
  assert (length (take size (Data d f)) = size) as Lt by (rewrite take_length; lia).
  rewrite take_at Splice_at; [|lia].
  destruct (decide (size < off + length data)) as [Hlt|Hge].
  - destruct (decide (off + length data ≤ size)) as [Hx|_]; [lia|].
    destruct (decide (off + length data < size)) as [?|_]; [lia|].
    rewrite Splice_at; [|rewrite app_length Lt /Zeros replicate_length; lia].
    rewrite app_at Lt take_at Zeros_at. repeat case_decide; try lia; try done.
    + apply Hold. lia.
    + apply Hzero. lia.
  - rewrite Splice_at; [|lia]. rewrite take_at. repeat case_decide; try lia; try done; apply Hold; lia.
Qed.

Lemma run_setattr f size now d st d' : Inv d → Time now → run (setattr f size now) d st d' →
  Inv d' ∧ Setattr (Abs d) f size now st (Abs d').
Proof.
  intros HI Hnow Hr. unfold setattr in Hr. unfold Setattr. case_decide as Hf.
  { by apply run_ret in Hr as [-> ->]. }
  case_decide as Hbig.
  { by apply run_ret in Hr as [-> ->]. }
  apply run_bind in Hr as ([[b m] was]&d1&Hg&Hr).
  apply run_grown in Hg as (->&->&Hsize&Hs&Lm&Lb&Hold&Hzero); [|done|lia|lia].
  apply run_bind in Hr as (u&d1&Hp&[-> ->]%run_ret).
  apply run_put in Hp as [HI' HA]; [|done|lia|lia|done|done|done].
  split; [done|]. exists (FileOf d f). split; [apply Abs_at; lia|]. split; [done|]. rewrite HA. f_equal. f_equal.
  pose proof (HI f ltac:(lia)) as HS. pose proof HS as (_&HLb&_). apply list_eq. intros i.
  unfold Resized. rewrite FileOf_length; [|done]. simpl. rewrite -Hsize.
  assert (length (take was (Data d f)) = was) as Lt by (rewrite take_length; lia).
  rewrite take_at. destruct (decide (size ≤ was)) as [Hle|Hgt].
  - rewrite !take_at. repeat case_decide; try lia; try done. apply Hold. lia.
  - rewrite app_at Lt take_at Zeros_at. repeat case_decide; try lia; try done.
    + apply Hold. lia.
    + apply Hzero. lia.
Qed.

(** *** What the server does with a call (nfs.go): one transaction, of which the attributes in the reply are a part *)
Inductive request :=
  | GETATTR f
  | READ f off (count : nat)
  | WRITE f off (data : bytes) (sync : bool)
  | SETATTR f size
  | COMMIT f.
Record reply := Answer { st : nat; size_shown : nat; time_shown : N; read_data : bytes; read_eof : bool }.
Definition ok (r : reply) : bool := bool_decide (st r = OK).
(* example/simplenfs/nfs.go Write: "a, err := v.call(h, true, how != fs.Unstable, func(t *dtxn.Txn, f uint64) uint32 {"
   example/simplenfs/nfs.go Setattr: "a, err := v.call(h, true, true, func(t *dtxn.Txn, f uint64) uint32 {"
   example/simplenfs/nfs.go Commit: "a, err := v.call(h, false, false, v.getattr)"
   example/simplenfs/nfs.go Commit:
     "if failed := v.sys.Flush(); errors.Is(failed, fs.ErrClosed) {" *)
Definition stable (o : request) : bool := match o with WRITE _ _ _ sync => sync | SETATTR _ _ => true | _ => false end.
Definition flush (o : request) (r : reply) : bool := match o with COMMIT _ => ok r | _ => false end.

(** what the clock shows: nothing is promised of it but that it has 64 bits *)
Definition time_of (n : nat) : N := (N.of_nat n mod 2 ^ 64)%N.
Lemma time_of_time n : Time (time_of n).
Proof. apply N.mod_upper_bound. done. Qed.

Definition work (o : request) : program bytes (nat * bytes * bool) :=
  match o with
  | GETATTR f | COMMIT f => a ← getattr f; Ret (a.1.1, [], false)
  | READ f off count => read_file f off count
  | WRITE f off data _ => Choose (λ n, w ← write_file f off data (time_of n); Ret (w, [], false))
  | SETATTR f size => Choose (λ n, w ← setattr f size (time_of n); Ret (w, [], false))
  end.
Definition file_of (o : request) : nat :=
  match o with GETATTR f | READ f _ _ | WRITE f _ _ _ | SETATTR f _ | COMMIT f => f end.
(* example/simplenfs/nfs.go call: "err := v.sys.Run(stable, !change, func(t *dtxn.Txn) error {"
   example/simplenfs/nfs.go call: "if st := work(t, h.Ino-file0); st != 0 {"
   example/simplenfs/nfs.go call: "return fs.Errno(st)"
   example/simplenfs/nfs.go call: "_, size, mtime := simpleops.Getattr(t, v.first, h.Ino-file0)" *)
Definition body (o : request) : program bytes reply :=
  w ← work o;
  if decide (w.1.1 = OK)
  then a ← getattr (file_of o); Ret (Answer OK (a.1.2) (a.2) (w.1.2) (w.2))
  else Ret (Answer (w.1.1) 0 0%N [] false).
(** Of itself the server changes nothing: no run of this is one that commits. *)
Definition own : program bytes reply := Ret (Answer STALE 0 0%N [] false).
Definition shed (s s' : State) : Prop := False.

(** What a client may be told: what the specification says of the procedure, and attributes which the file has then. *)
Definition does_as (s : State) (o : request) (r : reply) (s' : State) : Prop :=
  match o with
  | GETATTR f | COMMIT f => s' = s ∧ ∃ size time, Getattr s f (st r) size time
  | READ f off count => s' = s ∧ (st r = OK → Read s f off count OK (read_data r) (read_eof r)) ∧
      (st r ≠ OK → ∃ data eof, Read s f off count (st r) data eof)
  | WRITE f off data _ => ∃ now, Time now ∧ Write s f off data now (st r) s'
  | SETATTR f size => ∃ now, Time now ∧ Setattr s f size now (st r) s'
  end.
Definition allowed (s : State) (o : request) (r : reply) (s' : State) : Prop :=
  does_as s o r s' ∧ (st r = OK → Getattr s' (file_of o) OK (size_shown r) (time_shown r)) ∧ (st r ≠ OK → s' = s).

(** *** The volume, as transactions have it *)
Definition keys : gset key := set_seq 0 (FILES + FILES).
Notation Vol := (key → bytes).
Definition cell (w : Vol) (k : key) : bytes := w k.
Definition free (w : Vol) (k : key) : Prop := False.       (* no block is ever free *)
Definition abs (d : Objects) (s : State) : Prop := Inv d ∧ s = Abs d.
(** As Create leaves it.
    example/simplenfs/new.dfy ZerosAreNew: "requires Layout(first, kinds) && ValidWith(kinds, d) && Zero(d)"
    example/simplenfs/new.dfy ZerosAreNew: "ensures Inv(first, d) && New(Abs(first, d))" *)
Definition fresh (w : Vol) : Prop := ∀ f, f < FILES → w (meta f) = Zeros META ∧ w (block f) = Zeros MAX.
Lemma meta_key f : f < FILES → meta f ∈ keys.
Proof. intros H. unfold keys, meta. apply elem_of_set_seq. lia. Qed.
Lemma block_key f : f < FILES → block f ∈ keys.
Proof. intros H. unfold keys, block. apply elem_of_set_seq. lia. Qed.

Lemma run_getattr_ok f d a d' : Inv d → run (getattr f) d a d' → d' = d ∧ Getattr (Abs d) f (a.1.1) (a.1.2) (a.2).
Proof. destruct a as [[s z] t]. apply run_getattr. Qed.

Lemma run_work o d w d' : Inv d → run (work o) d w d' →
  Inv d' ∧ (∀ size time, does_as (Abs d) o (Answer (w.1.1) size time (w.1.2) (w.2)) (Abs d')) ∧ (w.1.1 ≠ OK →
    Abs d' = Abs d).
Proof.
  intros HI Hr. destruct o as [f|f off count|f off data sync|f size|f]; simpl in Hr.
  - apply run_bind in Hr as (a&d1&Ha&[-> ->]%run_ret). apply run_getattr_ok in Ha as [-> Ha]; [|done].
    split; [done|]. split; [|done]. intros size time. split; [done|]. eauto.
  - destruct w as [[s x] e]. apply run_read_file in Hr as [-> Hr]; [|done]. split; [done|]. split; [|done].
    intros size time. split; [done|]. simpl. split; [by intros ->|eauto].
  - apply run_choose in Hr as [n Hn]. apply run_bind in Hn as (s&d1&Hw&[-> ->]%run_ret).
    apply run_write_file in Hw as [HI' Hw]; [|done|apply time_of_time]. split; [done|]. split.
    + intros size1 time1. exists (time_of n). split; [apply time_of_time|done].
    + intros Hs. unfold Write in Hw. simpl in Hs. repeat case_decide; destruct_and?; try done.
      destruct Hw as (?&_&?&_). done.
  - apply run_choose in Hr as [n Hn]. apply run_bind in Hn as (s&d1&Hw&[-> ->]%run_ret).
    apply run_setattr in Hw as [HI' Hw]; [|done|apply time_of_time]. split; [done|]. split.
    + intros size1 time1. exists (time_of n). split; [apply time_of_time|done].
    + intros Hs. unfold Setattr in Hw. simpl in Hs. repeat case_decide; destruct_and?; try done.
      destruct Hw as (?&_&?&_). done.
  - apply run_bind in Hr as (a&d1&Ha&[-> ->]%run_ret). apply run_getattr_ok in Ha as [-> Ha]; [|done].
    split; [done|]. split; [|done]. intros size time. split; [done|]. eauto.
Qed.
(** A call does as the specification says. *)
Lemma run_body o d r d' : Inv d → run (body o) d r d' → Inv d' ∧ allowed (Abs d) o r (Abs d').
Proof.
  intros HI Hr. unfold body in Hr. apply run_bind in Hr as (w&d1&Hw&Hr).
  apply run_work in Hw as (HI1&Hdoes&Herr); [|done]. case_decide as Hs.
  - apply run_bind in Hr as (a&d2&Ha&[-> ->]%run_ret). apply run_getattr_ok in Ha as [-> Ha]; [|done].
    split; [done|]. unfold allowed. simpl. specialize (Hdoes (a.1.2) (a.2)). rewrite Hs in Hdoes. split; [done|].
    split; [|done].
    intros _. unfold Getattr in *. case_decide; [|by destruct Ha as (x&?&?&?); exists x]. exfalso.
    destruct o; simpl in *; unfold Getattr, Read, Write, Setattr in Hdoes; simpl in *; destruct_and?;
      repeat case_decide; try lia; naive_solver.
  - apply run_ret in Hr as [-> ->]. split; [done|]. unfold allowed. simpl. split; [|by split].
    specialize (Hdoes 0 0%N). rewrite (Herr Hs) in Hdoes |- *.
    destruct o; simpl in *; destruct_and?; split_and?; eauto; by intros.
Qed.

(** What the client theorem asks of procedures holds of these. *)
Theorem simplenfs_alone : Sequential keys cell body own ok free fresh New allowed shed abs.
Proof.
  split.
  - intros o d s r d' [HI ->] Hr _. destruct (run_body o d r d' HI Hr) as [HI' Ha]. by exists (Abs d').
  - intros o d s r d' [HI ->] Hr Hok. destruct (run_body o d r d' HI Hr) as [HI' (Hd&Hg&He)].
    apply bool_decide_eq_false in Hok. rewrite (He Hok) in Hd. by split.
  - intros d s r d' _ Hr Hok. apply run_ret in Hr as [-> _]. done.
  - intros w w' d d' s Hd Hd' Hsame [HI ->]. destruct (Abs_same d d') as [HI' E]; [|done|by split].
    intros f Hf. unfold Meta, Data.
    rewrite (Hd _ (meta_key f Hf)) (Hd _ (block_key f Hf)) (Hd' _ (meta_key f Hf)) (Hd' _ (block_key f Hf)).
    simpl. split; apply Hsame; auto using meta_key, block_key.
  - intros d s s' [_ ->] [_ ->]. done.
  - intros w Hw. pose proof (DataIs keys cell w) as HD. set (d := DataOf keys cell w) in *.
    assert (∀ f, f < FILES → Meta d f = Zeros META ∧ Data d f = Zeros MAX) as Hz.
    { intros f Hf. unfold Meta, Data. rewrite (HD _ (meta_key f Hf)) (HD _ (block_key f Hf)). simpl. by apply Hw. }
    assert (∀ n i, U64At (Zeros n) i = 0%N) as Hzero.
    { intros n i. unfold U64At, Zeros. rewrite drop_replicate take_replicate. apply Dec_Zeros. }
    assert (Inv d) as HI.
    { intros f Hf. destruct (Hz f Hf) as [E1 E2]. unfold Sound, Size. rewrite E1 E2 Hzero.
      unfold Zeros. rewrite !replicate_length. split_and!; [done..|lia]. }
    exists (Abs d). split; [|by split]. split; [apply Abs_length|]. intros f x Hx.
    assert (f < FILES) as Hf by (apply lookup_lt_Some in Hx; by rewrite Abs_length in Hx).
    rewrite (Abs_at d f Hf) in Hx. injection Hx as <-. destruct (Hz f Hf) as [E1 E2].
    unfold FileOf, Size. by rewrite E1 E2 !Hzero.
Qed.

(** *** THE THEOREM: what clients of simplenfs have seen at any moment, many at once and through any number of crashes,
  is a
    trace of the specification. *)
Notation trace := (trace New allowed stable flush shed).
Notation machine := (machine (V:=State) (Op:=request) (Res:=reply)).
Notation execution := (execution keys cell body own ok stable flush free fresh).
Notation Contracts := (Contracts keys cell body own ok stable flush).
Theorem clients_of_simplenfs h w L : execution h w → Opens L w → Contracts L →
  ∀ t, t ≤ ending L → ∃ M, trace (h ++ seen L t) M.
Proof. intros. by eapply clients_see_the_specification; [apply simplenfs_alone|..]. Qed.
(** Every state of such a trace is one that there can be. *)
Lemma allowed_possible s o r s' : Possible s → allowed s o r s' → Possible s'.
Proof.
  intros [Hl Hb] [Hd _].
  assert (∀ f x, length (contents x) ≤ MAX → Possible (<[f := x]> s)) as Hput.
  { intros f x Hx. split; [by rewrite insert_length|]. intros g y Hy.
    apply list_lookup_insert_Some in Hy as [(<-&->&_)|[_ Hy]]; [done|by eapply Hb]. }
  destruct o; simpl in Hd; destruct_and?; subst; try done.
  - destruct Hd as (now&_&Hd). unfold Write in Hd. repeat case_decide; destruct_and?; subst; try done.
    destruct Hd as (x&Hx&_&->). apply Hput. simpl. specialize (Hb _ _ Hx). unfold Laid. case_decide.
    + rewrite Splice_length; unfold Resized; case_decide; rewrite ?take_length ?app_length /Zeros ?replicate_length;
        lia.
    + rewrite Splice_length; lia.
  - destruct Hd as (now&_&Hd). unfold Setattr in Hd. repeat case_decide; destruct_and?; subst; try done.
    destruct Hd as (x&Hx&_&->). apply Hput. simpl. specialize (Hb _ _ Hx). unfold Resized.
    case_decide; rewrite ?take_length ?app_length /Zeros ?replicate_length; lia.
Qed.
Theorem states_are_possible h M : trace h M → ∀ s, s ∈ states M → Possible s.
Proof.
  induction 1 as [s Hs|h M e M' _ IH Hstep]; intros s' Hin.
  - apply elem_of_list_singleton in Hin as ->. destruct Hs as [Hl Hx]. split; [done|].
    intros f x Hf. rewrite (Hx f x Hf). simpl. lia.
  - destruct Hstep as [| vs k cs i o v r v' _ Hv Ha| |vs k cs v v' _ []| | | |vs k cs n v _ Hv]; simpl in *; eauto.
    + apply elem_of_app in Hin as [Hin|Hin%elem_of_list_singleton]; [by apply IH|]. subst.
      eapply allowed_possible; [|exact Ha]. apply IH. rewrite last_lookup in Hv. by eapply elem_of_list_lookup_2.
    + apply elem_of_list_singleton in Hin as ->. apply IH. by eapply elem_of_list_lookup_2.
Qed.

(** For instance: what a stable WRITE has stored in a new volume is what a READ finds after a crash. *)
Definition holds f (data : bytes) (s : State) : Prop := ∃ x, s !! f = Some x ∧ contents x = data.
Lemma write_new f data sync s r s' : f < FILES → 0 < length data ≤ MAX → New s → allowed s (WRITE f 0 data sync) r s' →
  st r = OK ∧ holds f data s'.
Proof.
  intros Hf Hlen [Hl Hnew] [(now&_&Hw) _]. unfold Write in Hw. repeat case_decide; try lia. destruct Hw as (x&Hx&?&->).
  split; [done|]. eexists. split; [by rewrite list_lookup_insert; [|lia]|]. simpl. rewrite (Hnew f x Hx). simpl.
  unfold Laid, Resized, Splice. simpl. repeat case_decide; simpl in *; try lia.
  rewrite drop_ge; [by rewrite app_nil_r|]. unfold Zeros. rewrite replicate_length. lia.
Qed.
Lemma read_holds f data count s r s' : f < FILES → holds f data s → allowed s (READ f 0 count) r s' →
  (st r = OK ∧ read_data r = take count data) ∧ s' = s.
Proof.
  intros Hf (x&Hx&Hc) [(->&Hok&Herr) _]. split; [|done]. destruct (decide (st r = OK)) as [E|E].
  - specialize (Hok E). unfold Read in Hok. case_decide; [lia|]. destruct Hok as (y&Hy&_&->&_). simplify_eq.
    split; [done|].
    unfold Part. repeat case_decide; rewrite ?drop_0; [|by rewrite take_ge; [|lia]|done].
    by rewrite (nil_length_inv (contents x)); [|lia]; rewrite take_nil.
  - destruct (Herr E) as (d&e&Hr). unfold Read in Hr. case_decide; [lia|]. destruct Hr as (?&?&?&_). done.
Qed.
Theorem written_is_read f data count r1 r2 M : f < FILES → 0 < length data ≤ MAX →
  trace [Call 1 (WRITE f 0 data true); Reply 1 r1; Crash; Call 2 (READ f 0 count); Reply 2 r2] M →
  st r1 = OK ∧ st r2 = OK ∧ read_data r2 = take count data.
Proof.
  intros Hf Hlen Hm.
  set (since j (M : machine) := ∀ n s, j ≤ n → states M !! n = Some s → holds f data s).
  set (newest (M : machine) := ∃ s, last (states M) = Some s ∧ New s).
  set (good r := st r = OK ∧ read_data r = take count data).
  apply (staged New allowed stable flush shed _ (λ k M, match k with
    | 0 => newest M ∧ ∀ i, calls M i = Idle
    | 1 => (newest M ∧ calls M 1 = Waiting (WRITE f 0 data true) ∨ ∃ r j, calls M 1 = Done r j ∧ st r = OK ∧
      since j M) ∧
        ∀ i, i ≠ 1 → calls M i = Idle
    | 2 => st r1 = OK ∧ since (kept M) M ∧ ∀ i, calls M i = Idle
    | 3 => st r1 = OK ∧ since 0 M ∧ ∀ i, calls M i = Idle
    | 4 => st r1 = OK ∧ since 0 M ∧ (calls M 2 = Waiting (READ f 0 count) ∨ ∃ r j, calls M 2 = Done r j ∧ good r) ∧
        ∀ i, i ≠ 2 → calls M i = Idle
    | _ => st r1 = OK ∧ good r2
    end)) in Hm; [done|..].
  - intros s Hs. split; [by exists s|done].
  - intros k M1 M2 HA Hs.
    inversion Hs as [|vs kp cs i o v r v' Hi Hv Ha|vs kp cs i o v r Hi Hv Ha|vs kp cs v v' _ []|vs kp cs kp' Hk| | |];
      clear Hs; subst M1 M2; unfold since, newest in *; simpl in *.
    + destruct k as [|[|[|[|[|k]]]]]; simpl in *.
      * destruct HA as [_ HA]. congruence.
      * destruct HA as [HA Hidle]. destruct (decide (i = 1)) as [->|]; [|rewrite Hidle in Hi; congruence].
        destruct HA as [[(s&Hs&Hnew) Hw]|(r'&j&Hd&_)]; [|congruence]. rewrite Hw in Hi. simplify_eq.
        destruct (write_new _ _ _ _ _ _ Hf Hlen Hnew Ha) as [Hok Hholds].
        split; [|intros i Hne; rewrite set_ne; auto].
        right. exists r, (length vs). rewrite set_eq. split; [done|]. split; [done|].
        intros n s2 Hn [Hx|[_ Hx]]%lookup_app_Some; [apply lookup_lt_Some in Hx; lia|].
        by apply list_lookup_singleton_Some in Hx as [_ <-].
      * destruct HA as (_&_&HA). congruence.
      * destruct HA as (_&_&HA). congruence.
      * destruct HA as (Hr1&Hall&HA&Hidle). destruct (decide (i = 2)) as [->|]; [|rewrite Hidle in Hi; congruence].
        destruct HA as [Hw|(r'&j&Hd&_)]; [|congruence]. rewrite Hw in Hi. simplify_eq.
        destruct (read_holds f data count v r v' Hf) as [Hgood ->]; [|done|].
        { rewrite last_lookup in Hv. by eapply Hall, Hv; lia. }
        split; [done|]. split; [|split; [|intros i Hne; rewrite set_ne; auto]].
        -- intros n s _ [Hx|[_ Hx]]%lookup_app_Some; [by eapply Hall, Hx; lia|].
           apply list_lookup_singleton_Some in Hx as [_ <-]. rewrite last_lookup in Hv. by eapply Hall, Hv; lia.
        -- right. exists r. eexists. rewrite set_eq. done.
      * done.
    + destruct k as [|[|[|[|[|k]]]]]; simpl in *.
      * destruct HA as [_ HA]. congruence.
      * destruct HA as [HA Hidle]. destruct (decide (i = 1)) as [->|]; [|rewrite Hidle in Hi; congruence].
        destruct HA as [[(s&Hs&Hnew) Hw]|(r'&j&Hd&_)]; [|congruence]. rewrite Hw in Hi. simplify_eq.
        destruct (write_new _ _ _ _ _ _ Hf Hlen Hnew Ha) as [_ (x&Hx&Hc)]. destruct Hnew as [_ Hnew].
        rewrite (Hnew _ _ Hx) in Hc. simpl in Hc. subst data. simpl in Hlen. lia.
      * destruct HA as (_&_&HA). congruence.
      * destruct HA as (_&_&HA). congruence.
      * destruct HA as (Hr1&Hall&HA&Hidle). destruct (decide (i = 2)) as [->|]; [|rewrite Hidle in Hi; congruence].
        destruct HA as [Hw|(r'&j&Hd&_)]; [|congruence]. rewrite Hw in Hi. simplify_eq.
        destruct (read_holds f data count v r v Hf) as [Hgood _]; [|done|].
        { rewrite last_lookup in Hv. by eapply Hall, Hv; lia. }
        split; [done|]. split; [done|]. split; [|intros i Hne; rewrite set_ne; auto].
        right. exists r. eexists. rewrite set_eq. done.
      * done.
    + destruct k as [|[|[|[|[|k]]]]]; simpl in *; try done.
      destruct HA as (?&Hall&?). split; [done|]. split; [|done]. intros n s Hn Hx. apply (Hall n s); [lia|done].
  - intros k e M1 M2 He HA Hs.
    inversion Hs as [vs kp cs i o Hi| | | | |vs kp cs i r j Hi Hj|vs kp cs i Hi|vs kp cs n v Hn Hv];
      clear Hs; subst M1 M2 e; unfold since, newest in *; simpl in *; destruct k as [|[|[|[|[|k]]]]]; simpl in *;
        simplify_eq.
    + destruct HA as [Hnew Hidle]. split; [|intros i Hne; rewrite set_ne; auto]. left. by rewrite set_eq.
    + destruct HA as (Hr1&Hall&Hidle). split; [done|]. split; [done|].
      split; [left; by rewrite set_eq|intros i Hne; rewrite set_ne; auto].
    + destruct HA as [[[_ Hw]|(r'&j'&Hd&Hok&Hall)] Hidle]; [congruence|]. rewrite Hd in Hi. simplify_eq.
      split; [done|]. split; [intros n s Hn; apply Hall; lia|].
      intros i. destruct (decide (i = 1)) as [->|]; [by rewrite set_eq|rewrite set_ne; auto].
    + destruct HA as (Hr1&_&[Hw|(r'&j'&Hd&Hgood)]&_); [congruence|]. rewrite Hd in Hi. by simplify_eq.
    + destruct HA as (Hr1&Hall&_). split; [done|]. split; [|done].
      intros i s _ Hx. apply list_lookup_singleton_Some in Hx as [_ <-]. by eapply Hall, Hv.
Qed.

(** *** And it happens: simplenfs has such lives. *)
Notation life := (life (Obj:=bytes) (Vol:=Vol) (Op:=request) (Res:=reply)).
(** A stable call that changes something, alone; *)
Definition changed o l r (w w' : Vol) : life := {|
  acts := [Comes 1 o; Closes 1 l r; Points 1 1; Works; Answers 1 r 1];
  vs t := if decide (t ≤ 2) then [w] else [w; w'];
  lb t := if decide (t ≤ 3) then 0 else 1;
  logs t := if decide (t ≤ 2) then ∅ else {[1 := l]};
  stab t := if decide (t ≤ 2) then ∅ else (λ _, 1) <$> Writes l;
  phases t i := if decide (i = 1)
    then match t with 0 => Away | 1 => Came o | 2 => Closed o l r 0 | 3 | 4 => Pointed o l r 0 1 | _ => Over end
    else Away |}.
(** and one that changes nothing. *)
Definition looked o l r (w : Vol) : life := {|
  acts := [Comes 2 o; Closes 2 l r; Answers 2 r 0];
  vs t := [w]; lb t := 0; logs t := ∅; stab t := ∅;
  phases t i := if decide (i = 2) then match t with 0 => Away | 1 => Came o | 2 => Closed o l r 0 | _ => Over end else
    Away |}.

Ltac acts_of t H := unfold at_ in H; destruct t as [|[|[|[|[|t]]]]]; simpl in H; simplify_eq; try done.
Lemma changed_keeps o l r w w' : does (body o) l r → wrote ok l r = true → Leads keys cell l w w' →
  Contracts (changed o l r w w').
Proof.
  intros Hd Hw HL. split.
  - split; [by intros i; simpl; case_decide| | |].
    + intros t a i Ha Hi. acts_of t Ha; simpl in Hi; simplify_eq; simpl; by constructor.
    + intros t a i Ha Hi. acts_of t Ha; simpl in *; case_decide; subst; try done; by destruct Hi.
    + intros t l' r' n Ha. by acts_of t Ha.
  - intros t Ht. unfold ending in Ht. simpl in *. repeat case_decide; try lia; split_and!; try done; try lia.
    all: try by exists [w']. all: try by exists []. apply map_empty_subseteq.
  - intros t _. simpl. case_decide; split.
    + intros n l'. by rewrite lookup_empty.
    + intros n Hn. simpl in Hn. lia.
    + intros n l' [<- <-]%lookup_singleton_Some. split; [lia|]. by exists w, w'.
    + intros [|[|n]] Hn; simpl in Hn; [lia| |lia]. rewrite lookup_singleton. eauto.
  - split.
    + intros t i n o' l' r' p Ha Hp. acts_of t Ha; simpl in *; simplify_eq; by split_and!.
    + intros t l' r' n Ha. by acts_of t Ha.
    + intros t n Ht Hn [l' Hl]. unfold ending in Ht. simpl in *. repeat case_decide; try lia; try congruence.
      assert (t = 2) as -> by lia. left. exists 1. by apply lookup_singleton_Some in Hl as [<- _].
  - intros t i l' r' Ha. acts_of t Ha; exists w; split; [done|apply HL].
  - split.
    + intros t i r' need Ha. acts_of t Ha; simpl; lia.
    + intros t i r' need o' l' p n Ha Hp _. acts_of t Ha; simpl in *; by simplify_eq.
    + intros t i r' need o' l' p Ha Hp. acts_of t Ha.
    + intros t _. simpl. repeat case_decide; simpl; lia.
  - split.
    + intros t i n o' l' r' p k Ha Hp _ [x Hx].
      acts_of t Ha; simpl in *; simplify_eq; exists 1; by rewrite lookup_fmap Hx.
    + intros t k n _ Hn. simpl in *. repeat case_decide; try lia; try (by rewrite lookup_empty in Hn); eauto.
    + intros s t i l' r' r'' need k n Hs _ _ _ Hn. acts_of s Hs.
Qed.
Lemma looked_keeps o l r w : does (body o) l r → wrote ok l r = false → flush o r = false → Finds keys cell l w →
  Contracts (looked o l r w).
Proof.
  intros Hd Hw Hf HF. split.
  - split; [by intros i; simpl; case_decide| | |].
    + intros t a i Ha Hi. acts_of t Ha; simpl in Hi; simplify_eq; simpl; by constructor.
    + intros t a i Ha Hi. acts_of t Ha; simpl in *; case_decide; subst; try done; by destruct Hi.
    + intros t l' r' n Ha. by acts_of t Ha.
  - intros t _. simpl. split_and!; [by exists []|done|done].
  - intros t _. simpl. split; [intros n l'; by rewrite lookup_empty|intros n Hn; simpl in Hn; lia].
  - split.
    + intros t i n o' l' r' p Ha. by acts_of t Ha.
    + intros t l' r' n Ha. by acts_of t Ha.
    + intros t n _ _ [l' Hl]. simpl in Hl. by rewrite lookup_empty in Hl.
  - intros t i l' r' Ha. acts_of t Ha; by exists w.
  - split.
    + intros t i r' need Ha. acts_of t Ha; simpl; lia.
    + intros t i r' need o' l' p n Ha Hp _. acts_of t Ha.
    + intros t i r' need o' l' p Ha Hp Hfl. acts_of t Ha; simpl in *; simplify_eq; congruence.
    + intros t _. simpl. lia.
  - split.
    + intros t i n o' l' r' p k Ha. by acts_of t Ha.
    + intros t k n _ Hn. simpl in Hn. by rewrite lookup_empty in Hn.
    + intros s t i l' r' r'' need k n _ _ _ _ Hn. simpl in Hn. by rewrite lookup_empty in Hn.
Qed.

(** So there are such executions. *)
Lemma both_serve o l r o' l' r' w w' : fresh w → does (body o) l r → wrote ok l r = true → Leads keys cell l w w' →
  does (body o') l' r' → wrote ok l' r' = false → flush o' r' = false → Finds keys cell l' w' →
  ∃ h w1 L, execution h w1 ∧ Opens L w1 ∧ Contracts L ∧
    h ++ seen L (ending L) = [Call 1 o; Reply 1 r; Crash; Call 2 o'; Reply 2 r'].
Proof.
  intros Hfresh Hd Hw HL Hd' Hw' Hf HF.
  exists ([] ++ seen (changed o l r w w') 5 ++ [Crash]), w', (looked o' l' r' w').
  split; [|split; [done|split; [by apply looked_keeps|done]]].
  eapply served with (w := w) (n := 1); [by constructor|done|by apply changed_keeps|].
  split; [done|]. exists w, w'. split; [done|]. intros k Hk _. exact (Leads_cell _ _ _ _ _ _ HL Hk).
Qed.

(** The logs. *)
Lemma does_bind {A B} (p : program bytes A) (k : A → program bytes B) l1 a l2 r :
  does p l1 a → does (k a) l2 r → does (p ≫= k) (l1 ++ l2) r.
Proof. unfold mbind, program_bind. induction 1; simpl; intros; [done|by constructor; auto..|]. eapply does_choose.
eauto. Qed.
Lemma does_read_one k o : does (read k) [OpRead k o] o.
Proof. repeat constructor. Qed.
Lemma does_write_one k o : does (write k o) [OpWrite k o] ().
Proof. repeat constructor. Qed.
Lemma does_getattr f m : f < FILES → does (getattr f) [OpRead (meta f) m] (OK, Size m, U64At m 8).
Proof.
  intros Hf. unfold getattr. rewrite decide_False; [|lia].
  apply (does_bind _ _ [_] m []); [apply does_read_one|constructor].
Qed.
Lemma does_read_file f off count m b : f < FILES → ∃ l e, does (read_file f off count) l (OK, e.1, e.2) ∧
  ∀ e', e' ∈ l → e' = OpRead (meta f) m ∨ e' = OpRead (block f) b.
Proof.
  intros Hf. unfold read_file. rewrite decide_False; [|lia]. cbv zeta.
  set (n := if decide (Size m ≤ off) then 0 else if decide (Size m - off ≤ count) then Size m - off else count).
  destruct (decide (0 < n)) as [Hn|Hn].
  - exists [OpRead (meta f) m;
      OpRead (block f) b], (take n (drop off b), bool_decide (Size m ≤ off ∨ n = Size m - off)).
    split; [|set_solver]. apply (does_bind _ _ [_] m [_]); [apply does_read_one|]. fold n. rewrite decide_True; [|done].
    apply (does_bind _ _ [_] (take n (drop off b)) []); [|constructor].
    apply (does_bind _ _ [_] b []); [apply does_read_one|constructor].
  - exists [OpRead (meta f) m], (Zeros n, bool_decide (Size m ≤ off ∨ n = Size m - off)).
    split; [|set_solver]. apply (does_bind _ _ [_] m []); [apply does_read_one|]. fold n. rewrite decide_False; [|done].
    apply (does_bind _ _ [] (Zeros n) []); constructor.
Qed.
Lemma reads_only w (l : log bytes) : (∀ e, e ∈ l → ∃ k, k ∈ keys ∧ e = OpRead k (w k)) →
  Writes l = ∅ ∧ Finds keys cell l w.
Proof.
  intros H. assert (∀ i, Writes (take i l) = ∅) as HW.
  { intros i. assert (∀ e, e ∈ take i l → ∃ k, k ∈ keys ∧ e = OpRead k (w k)) as H'.
    { intros e (j&Hj)%elem_of_list_lookup. apply H. apply elem_of_list_lookup. exists j. by eapply lookup_take_Some. }
    revert H'. generalize (take i l). intros l'. induction l' as [|e l' IH] using rev_ind; intros H'; [done|].
    rewrite Writes_snoc IH; [|intros; apply H'; set_solver]. destruct (H' e) as (k&_&->); [set_solver|]. done. }
  split; [rewrite -(firstn_all l); apply HW|]. intros i k o Hi.
  destruct (H (OpRead k o)) as (k'&Hk&[= <- ->]); [by eapply elem_of_list_lookup_2|].
  split; [done|]. unfold After. by rewrite HW lookup_empty.
Qed.
Lemma does_write_new f data m b : f < FILES → 0 < length data ≤ MAX → ∃ m' b' r,
  does (body (WRITE f 0 data true)) [OpRead (meta f) m; OpRead (block f) b; OpWrite (meta f) m'; OpWrite (block f) b';
    OpRead (meta f) m'] r ∧ st r = OK.
Proof.
  intros Hf Hlen. eexists _, _, _. split.
  - unfold body, work. apply (does_bind _ _ [_; _; _; _] (OK, [], false) [_]).
    + apply (does_choose 0). apply (does_bind _ _ [_; _; _; _] OK []); [|constructor].
      unfold write_file. rewrite decide_False; [|lia]. cbv zeta. rewrite decide_False; [|lia].
      rewrite decide_False; [|lia].
      apply (does_bind _ _ [_; _] (b, m, Size m) [_; _]).
      * unfold grown. apply (does_bind _ _ [_] m [_]); [apply does_read_one|]. cbv zeta.
        apply (does_bind _ _ [_] b []); [apply does_read_one|]. cbv beta.
        destruct (decide (Size m < 0)); [lia|constructor].
      * apply (does_bind _ _ [_; _] () []); [|constructor]. unfold put.
        apply (does_bind _ _ [_] () [_]); apply does_write_one.
    + cbn [fst snd].
      destruct (decide (OK = OK)) as [_|n]; [|exfalso; apply n; reflexivity].
      eapply (does_bind _ _ [_] _ []); [by apply does_getattr|constructor].
  - done.
Qed.

Lemma does_body o l (x : bytes * bool) m : file_of o < FILES → does (work o) l (OK, x.1, x.2) →
  does (body o) (l ++ [OpRead (meta (file_of o)) m]) (Answer OK (Size m) (U64At m 8) (x.1) (x.2)).
Proof.
  intros Hf Hw. unfold body. apply (does_bind _ _ l (OK, x.1, x.2) [_]); [exact Hw|]. cbn [fst snd].
  destruct (decide (OK = OK)) as [_|n]; [|exfalso; apply n; reflexivity].
  apply (does_bind _ _ [_] (OK, Size m, U64At m 8) []); [by apply does_getattr|constructor].
Qed.

Theorem it_serves f data count : f < FILES → 0 < length data ≤ MAX → ∃ h w L r1 r2,
  execution h w ∧ Opens L w ∧ Contracts L ∧
  h ++ seen L (ending L) = [Call 1 (WRITE f 0 data true); Reply 1 r1; Crash; Call 2 (READ f 0 count); Reply 2 r2].
Proof.
  intros Hf Hlen. assert (∃ w0 : Vol, fresh w0) as [w0 Hfresh].
  { exists (λ k, if decide (k < FILES) then Zeros META else Zeros MAX). intros g Hg. unfold meta, block.
    split; case_decide; done || lia. }
  pose proof (meta_key f Hf) as Km. pose proof (block_key f Hf) as Kb.
  destruct (does_write_new f data (w0 (meta f)) (w0 (block f)) Hf Hlen) as (m'&b'&r1&Hd1&Hok1).
  set (l1 := [OpRead (meta f) (w0 (meta f)); OpRead (block f) (w0 (block f)); OpWrite (meta f) m'; OpWrite (block f) b';
    OpRead (meta f) m']) in *.
  set (w1 := (λ k, After cell l1 w0 k) : Vol).
  assert (Leads keys cell l1 w0 w1) as HL.
  { split; [|by intros k _]. intros i k o Hi. unfold l1 in Hi |- *.
    destruct i as [|[|[|[|[|i]]]]].
    - injection Hi as <- <-. split; [exact Km|]. reflexivity.
    - injection Hi as <- <-. split; [exact Kb|]. reflexivity.
    - discriminate Hi.
    - discriminate Hi.
    - injection Hi as <- <-. split; [exact Km|]. unfold After, Writes. cbn [take foldl History.write].
      rewrite lookup_insert_ne; [by rewrite lookup_insert|unfold meta, block, FILES; lia].
    - destruct i; discriminate Hi. }
  assert (wrote ok l1 r1 = true) as Hw1.
  { unfold wrote, ok. rewrite Hok1. rewrite (bool_decide_eq_true_2 (OK = OK)); [|reflexivity].
    apply bool_decide_eq_true. intros E.
    assert (Writes l1 !! block f = Some b') as E' by (unfold Writes, l1; cbn [foldl write]; by rewrite lookup_insert).
    by rewrite E lookup_empty in E'. }
  destruct (does_read_file f 0 count (w1 (meta f)) (w1 (block f)) Hf) as (l2&e&Hd2&Hreads).
  pose proof (does_body (READ f 0 count) l2 e (w1 (meta f)) Hf Hd2) as Hd. cbn [file_of] in Hd.
  set (l := l2 ++ [OpRead (meta f) (w1 (meta f))]) in *. set (r2 := Answer OK _ _ _ _) in Hd.
  assert (Writes l = ∅ ∧ Finds keys cell l w1) as [Hnone HF].
  { apply reads_only. intros e' [He| ->%elem_of_list_singleton]%elem_of_app.
    - destruct (Hreads e' He) as [-> | ->]; [exists (meta f)|exists (block f)]; (split; [assumption|reflexivity]).
    - exists (meta f). split; [assumption|reflexivity]. }
  destruct (both_serve (WRITE f 0 data true) l1 r1 (READ f 0 count) l r2 w0 w1) as (h&w&L&H);
    [exact Hfresh|exact Hd1|exact Hw1|exact HL|exact Hd| |reflexivity|exact HF|].
  - unfold wrote. rewrite Hnone. rewrite bool_decide_eq_false_2; [apply andb_false_r|]. intros n. apply n. reflexivity.
  - exists h, w, L, r1, r2. exact H.
Qed.
