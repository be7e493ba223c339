"""The grids of the IQ types: for each, some hundred points of which a block names the nearest by number.

A point has 8 coordinates (IQ3: 4) out of a few levels.  Read as digits of a number, the first coordinate the
least, the points of each grid are in ascending order.  So a grid is told by which of all possible numbers it
has: one bit each, deflated, in base 85.  `tools/compare_with_gguf.py --grids` prints these strings anew from
the tables of the `gguf` package.
"""

from __future__ import annotations

import base64
import zlib
from functools import cache

import numpy as np
from numpy.typing import NDArray

LEVELS: dict[str, tuple[int, ...]] = {
    "IQ1_S": (-1, 0, 1),
    "IQ2_XXS": (8, 25, 43),
    "IQ2_XS": (8, 25, 43),
    "IQ2_S": (8, 25, 43),
    "IQ3_XXS": (4, 12, 20, 28, 36, 44, 52, 62),
    "IQ3_S": (1, 3, 5, 7, 9, 11, 13, 15),
}

_POINTS: dict[str, str] = {
    "IQ1_S": (
        "EmA>CoJSabcdFraOl4y~L2`QctFhBr5$i4KWszN2^kPEt2RzxdNXa=(J}0~Bm)R6TAha}>aWKg^4Xg1`wx6&8PgZ(p>8%H8J%qX*"
        "0$v&n#LTX}&Ajlu&-1*`bL~P@H*DrIRz7ogN!#-%DXPy$iprG>BmIUcN=E^e`9PX<%ku|*5Mto|zA{(}s6v{|M**&<@CSp543nr%"
        ")tPHp$xUn<(&He<oVU2Yjwl2KF5v~ag!p6pC3Cdfyl0#K(#^w8wxxzzakl&C&_fnOOipK9F$6jLxBWb(qJ`zsveyFRTu?ZoXrNNK"
        "S~ti(c9*E8=xUH*2_MZzOk&Ha#8erfvWu39pCs19dkQNh=qfZYa~UeRPZek-ab+s%50=HLc*e*}py3y~DO|SV-PfQvG7+;HD5xf;"
        "vmyO9HL|$#*Rw`r$vq7J8x37PE2&y52`$mn&Tlrh>pz-*9Rmi^r9g>kSSvD<sA-<HTiLrqYl;>%7aa>L)9mc=YG?0t(M^8WzIAx~"
        "-|d&LzRC8!c>Br8%kkskgMW0K_wAvY$4xh=nkU)V!JVXUVPf&f@zo*(%ee1{fhozK(y!{?10}%1{p2H1i13y6ev3VAYqQIeFTbDs"
        "ee)o%@{@i~jQsJW4|w+ugt-+`{$dtS*UUgN3feBP<)|DERd}v?DSHzBTRz-Nx!+*7HaTLZWMfDHEne44E$<T`uJ(800+zd|0Zk*J"
        "QFl3dDHGsbRKY=S;Xb8`kA?`m^?IYhxC|63@m!#QwUouCJt$hJv$@S+dG$@x(-pD!vzdC8a2A?yeIXQyd0+G$yJjq6o{Ww`4V|XU"
        "dlg+f1GApt6Ucv9{y*jZP-*r2hyWmP@r*i_fvOIOg9y&eRl419tfw#?!&LARhDor@x(jpf0R"
    ),
    "IQ2_XXS": (
        "1;N3I13?f3Fg29_ZJ5ia1~!2GIR8{m`u&~XKKIIbEK)}yyxaRVCw)`PXL%XQJ?S}w5FiV1va9lyS*-yRuxUzQv8V<3j8J?51`19X"
        "^8vfy1<=bBiYNd|1q1*v;N9o$&WTmzp`|r+4c3wc41g0mAg~i4h<#qjFa!*s06GjnU?3X=C?EhX!%!$tEPMetAOHXZ005wuP^1C~"
        "z<I1f5G+v!1z-RefXoJrLIDG!27mzo01E~HK(GV@5C8-K001B$008h0"
    ),
    "IQ2_XS": (
        "1;Igz!$1%OFctLNJ7E8(2Qqgr#Q*=wO7Hvry=UJizxRF4?iIhko?Q~pd-i?jD$m(gs+g@8!@TQrRocvoVw$Kx=lA|SXU~e?U(Y6w"
        "=VJ(-vz>G?n}AUStfhwH0}3$UeS0=hPn*_gg5tYPz@Qo}0`yK1t$-HN@Qvp^`(2-_JZD?+HM27TbDvzL#Yz{9#5A}{CqXsaU;sR4"
        "_ljb6Szyp$R;u)n4W^;dRE-%3Jpq7WHt7}*0JK760F(|i01X5bpwNxESMKug+)-T+g^7Lrv@sL{LqX_L<e~}yg|6xqB|<a;P=+sd"
        "0~#(60165MG#XB-KwuhkMI#CW0{~zs<ACV`7FZDZ2L"
    ),
    "IQ2_S": (
        "ZIMB$Wibc^OE7Z-W<LgA<`Lrlx6*^$+y8yKogS<lD^-=XYP4RJdzH80CvBI~yX{(4HO|Ui<yC&tqLg&qMvUrJX(G`|KWPylZq0z;"
        "ROYHN(ofZ@(aPCAr#4*K>jyYmU7$B{#ULv6q=mqZ4Ac}u0ZxvbO{H`8jCQw-RDs5){5P-zP0+jCoox^>6aWk~01aVRt*YUl+^gEt"
        "a1Kq^4N+C6a<9pa_Iw)#nBPc+lNJ*sxDmi!HLCn1|D5c=`_>nbr#xI>AbbH00|@x6(b6@H7>`3k1w{bKZ=f0Wx&VxAj|90|-cf*v"
        "vAUmbQ&_kBB>H%^IMw%>w4alOZR`g=g(g6RfV^~t79gwa+3L<V<7o&${KsLpzh}q9<az~OO?Lu%w_^Y*_k#h`aNr~41C)3i{<@iX"
        "i^@Y&2yuBd{Q&"
    ),
    "IQ3_XXS": (
        "1;H_H0x=K(z}eNVWL;$ndW#C>6-SYt{K%q0ydq_unVIXSv$!99>zv}6{qeG1y&w#GZub|Zz+&>lkd8jCJLqh1bOx$Lo=!IixH!oL"
        "palB(&cat`@Q!}<jzwO;1<PRAk_m8}EMy<Vsuuag5sOmN0K}#qiiPQ9z#z=+*Bihjc6iuWn2;08AOKbiP$cnivM?2@U?AR5MFI$z"
        "3QSKEiDbis2f)OF0t1Ewf1wnd0*Y0{G6<wZn*ad-{{"
    ),
    "IQ3_S": (
        "1;IgT6j2laz<Q6@@TXV5hY`1(&IoZ%(UD}KZh|0QXA&YL*-h{Oq7lJd(yG7T&fA}Hcz%2SxO7YX{<uspqfJ|ePklHp@vyB;ik<8B"
        "%i7jaD*48BGx7Fy_~It(^OTz$T*k{(n>p%vb2p`mi=FXmA~!imIJv<%<eVyAzdj9z;rM=d+;1y+Hs0og?YrEK6{|a&eX{Ra$7tfa"
        "WKMIg(SrI{hacJU&_^MzqGBh==_#IOt$nCelN{#it7auJ8fKX4R2kxath2T-o@I+;MIVO+2K^Z1Pl=-G1ZScpHI-AX{ZLt`$abl5"
        "A4fgswiUHPt&Binr+|Zz5N^>az2=JODZs2L8#-Y|zzCcSYxGjtU0{2eAu0A6OA7)@p-2e8e*"
    ),
}


@cache
def grid(name: str) -> NDArray[np.int8]:
    """int8[points, 8], or [points, 4] for IQ3; read-only.  name: a key of LEVELS."""
    levels = np.array(LEVELS[name], np.int8)
    width = 4 if name.startswith("IQ3") else 8
    packed = np.frombuffer(zlib.decompress(base64.b85decode(_POINTS[name]), wbits=-15), np.uint8)
    numbers = np.flatnonzero(np.unpackbits(packed, bitorder="little"))
    digits = numbers[:, None] // len(levels) ** np.arange(width) % len(levels)
    points: NDArray[np.int8] = levels[digits]
    points.flags.writeable = False
    return points


@cache
def signs() -> NDArray[np.uint8]:
    """uint8[128]: eight sign bits of each 7-bit number, the eighth chosen so that their number is even."""
    numbers = np.arange(128, dtype=np.uint8)
    odd = np.unpackbits(numbers[:, None], axis=1).sum(axis=1, dtype=np.uint8) & np.uint8(1)
    even: NDArray[np.uint8] = numbers | odd << np.uint8(7)
    return even
